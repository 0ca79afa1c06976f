"""Nets written twice, in MindSpore and in PyTorch, and faults planted in them: does compare name the planted one first?

What is planted where is data (``catalogue``); two scripts dump (``record_mindspore``, ``record_pytorch``); ``score``
compares. The same nets under other names and structures (``variants``) ask whether modules are found again.
"""
