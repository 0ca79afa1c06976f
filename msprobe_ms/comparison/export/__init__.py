"""What a dump, or a comparison of two, shows, in the formats of other viewers."""
