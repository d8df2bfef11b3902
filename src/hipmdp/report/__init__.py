"""Every figure of the paper from the stored results of a study."""
