"""Record a training step: debugger, recorder, hooks, and what turns values into entries."""
