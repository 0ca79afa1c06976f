"""Accuracy pre-check: each recorded API call is run again, alone, and judged against a more precise reference."""
