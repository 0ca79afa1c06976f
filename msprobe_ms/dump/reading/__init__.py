"""Read dumps of every known variant."""
