"""Checkpoints and weight files, compared parameter by parameter; none of it needs a framework."""
