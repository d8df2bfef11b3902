"""Q(s, a): network, double-Q target, and the DQN over any step function, real or imagined."""
