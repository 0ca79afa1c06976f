"""Record what runs in compiled graphs: Cells inside them, and the kernels that they launch."""
