"""From a batch of earlier instances to a policy for a new one: collect, learn, and what is best known."""
