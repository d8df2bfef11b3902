"""T̂(s, a, w_b): one Bayesian neural network for all instances, one small latent for each; and a GP."""
