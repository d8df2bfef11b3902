"""Two measurements of the paper that are not cells of a study."""
