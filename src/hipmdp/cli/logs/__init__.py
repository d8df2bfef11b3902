"""What `pretrain` and `adapt` do with logs instead of an environment."""
