"""Measure each pair of rows: how far apart two values are, and how far rounding alone may set them apart."""
