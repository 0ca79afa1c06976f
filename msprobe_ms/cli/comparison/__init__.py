"""Commands that compare two dumps, and gather what was found in many."""
