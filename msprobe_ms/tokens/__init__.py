"""Two inferences, token by token: which generated token differs first, and whether that was a tie or an error."""
