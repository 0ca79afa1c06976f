"""The pre-check within a training: a sample of its calls is recorded, judged by a process beside it, and deleted."""
