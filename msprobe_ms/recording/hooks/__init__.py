"""Intercept calls: modules, APIs, primitives, jitted functions, kernels."""
