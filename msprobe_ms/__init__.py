"""Dump and compare for MindSpore, MSAdapter and PyTorch training."""
