"""Many runs: a grid of (family, method, instance, seed) cells, run, stored, resumed; and what they say together."""
