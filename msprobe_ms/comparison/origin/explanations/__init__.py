"""Reasons for which two healthy runs differ, one a module."""
