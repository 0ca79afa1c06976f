"""Attention as fused operators compute it: the operators, and the formulae, masks, biases and layouts they share."""
