"""The nets that are trained, each once in MindSpore and once in PyTorch, and the weights that both take."""
