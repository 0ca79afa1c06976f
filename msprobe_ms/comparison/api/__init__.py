"""Comparing from Python: ``compare``, ``assert_consistent`` and what they return."""
