"""Other people's logs as transitions, and ours as files."""
