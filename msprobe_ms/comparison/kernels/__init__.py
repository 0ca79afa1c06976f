"""Compare kernels (L2) by the order of their launches, and find the first kernel that is not finite."""
