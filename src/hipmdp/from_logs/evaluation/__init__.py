"""What a policy is worth on a system of which there is only a log."""
