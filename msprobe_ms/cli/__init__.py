"""Console command ``msprobe``: one module for each group of subcommands."""

from msprobe_ms.cli.main import main

__all__ = ["main"]
