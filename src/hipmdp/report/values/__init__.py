"""What a policy is worth on the systems of a log: a picture, a table, and a page with both."""
