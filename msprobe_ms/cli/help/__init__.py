"""What helps on the way: samples, completion, a look at the machine, a word on commands that are not here."""
