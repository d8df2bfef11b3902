"""Before the instance: the batch, the model of the family, policies for all of it."""
