"""What becomes of the entries of a step: the sinks between recorders and the disk, and the tool's own errors."""
