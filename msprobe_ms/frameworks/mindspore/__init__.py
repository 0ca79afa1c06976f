"""What only MindSpore knows: tensors, Cells, autograd, graphs, kernels."""
