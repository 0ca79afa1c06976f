"""What only PyTorch knows: tensors, autograd, devices, random state."""
