"""Every API of MindSpore that has a twin in torch, against it: forward and backward, on random data."""
