"""What of a step is recorded."""
