"""Draw instances, search for the best return on each, freeze the sets."""
