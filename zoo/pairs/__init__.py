"""One pair a file; each ends with ``PAIR``."""
