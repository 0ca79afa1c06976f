"""Calls of a training on their way to another process or machine: what is sent, how it travels, what receives it."""
