"""What task grad_probe wrote of two trainings, set beside each other: the step and the parameter at which they part."""
