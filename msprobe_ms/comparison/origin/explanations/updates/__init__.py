"""Reasons that lie in updates: what optimizers made of gradients, and what is computed from it later."""
