"""Find the origin of the error: the first node whose deviation nothing explains."""
