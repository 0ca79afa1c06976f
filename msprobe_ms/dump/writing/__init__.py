"""Write a dump: journal, tensor files, export to JSON, recovery."""
