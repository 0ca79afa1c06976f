"""Read the gradients of single calls from the gradient graph of a framework."""
