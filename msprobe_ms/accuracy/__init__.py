"""Accuracy pre-check: each recorded API call is run again, alone, and judged beside a reference of higher precision."""
