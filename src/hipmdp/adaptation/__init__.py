"""Algorithm 1: learn to control one new instance, episode by episode."""
