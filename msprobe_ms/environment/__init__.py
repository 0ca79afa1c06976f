"""What two trainings ran in: packages, variables, settings, data and weights, collected into a file and compared."""
