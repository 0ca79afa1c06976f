"""Callbacks and tensors written from compiled graphs: how MindSpore is made to compile them in, and when graphs run."""
