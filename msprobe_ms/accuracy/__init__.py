"""Single API calls of a dump, run again alone and held against a reference of higher precision."""
