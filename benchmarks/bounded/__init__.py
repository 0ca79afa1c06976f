"""What the tool holds in memory at most: ``python -m benchmarks.bounded``."""
