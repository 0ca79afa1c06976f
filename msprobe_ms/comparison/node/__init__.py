"""``--node``: everything known of one entry of a comparison."""
