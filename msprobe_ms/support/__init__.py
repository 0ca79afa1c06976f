"""Helpers that know nothing of dumps: errors, log, files, text, patching."""
