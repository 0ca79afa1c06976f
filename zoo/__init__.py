"""Pairs of public implementations of one network, faults drawn for each, and how often compare names them first."""
