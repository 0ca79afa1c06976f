"""Dumps alone, with nothing to compare them to, as pages to look at."""
