"""A page in one file: its skeleton, its policy, the encoding of its data. What it shows comes from elsewhere."""
