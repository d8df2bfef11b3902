"""Q(s, a): network, double-Q target, and the learner over any step function, real or imagined."""
