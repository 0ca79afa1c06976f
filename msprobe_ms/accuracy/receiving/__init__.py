"""The checker host: judges the calls that trainings send, while they train."""
