"""Compare many ranks and steps: which dump beside which, trends, the first rank that differs."""
