"""What helps on the way: a parser that knows what was meant, samples, completion, a look at the machine."""
