"""Trainings that are ended at any moment in any way: is what had finished in the dump, and is nothing in it half?

What runs and how it ends is data (``plans``). A training (``training``, with a net of each framework) tells what it
has finished in a file of its own, which knows nothing of the dump (``telling``); ``inspect`` compares the two.
"""
