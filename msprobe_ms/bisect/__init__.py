"""Narrow a training's step down to the first call that goes wrong, by recording ever less of it ever more closely."""
