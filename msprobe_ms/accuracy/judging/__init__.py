"""Judge what an API gave against its reference: figures, standards of comparison, thresholds, verdicts."""
