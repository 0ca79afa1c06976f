"""Interrupt recordings at every line of the package; look whether trainings are left as they were."""
