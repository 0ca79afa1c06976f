"""Does training survive a disk that fails, and what does its dump say of it? ``python -m torture.failing_disk``."""
