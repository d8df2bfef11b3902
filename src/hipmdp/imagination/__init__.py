"""Episodes inside T̂ for one instance: an environment that the DQN learns in."""
