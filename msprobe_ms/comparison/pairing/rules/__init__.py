"""Pairing by mapping files: layers, Cells, APIs, data."""
