"""Results of single cells: what is kept of each, and how it is stored."""
