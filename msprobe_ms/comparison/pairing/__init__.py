"""Pair the entries of two dumps: by names, by mapping files, or by automatic alignment."""
