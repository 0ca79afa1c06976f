"""Files and folders of kernels (L2) that frameworks write, indexed in the schema of a dump."""
