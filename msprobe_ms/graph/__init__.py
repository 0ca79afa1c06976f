"""What compiled graphs need: Cells inside them, and the kernels that they launch, recorded and read."""
