"""Whether trainings end with the same bits with the tool and without: ``python -m torture.neutral``."""
