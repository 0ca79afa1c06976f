"""What recording computes beside the training, which must not enter its gradient graph."""

from __future__ import annotations

from contextlib import nullcontext


class Quiet(nullcontext[None]):
    """A context for what is computed, with nothing to do where that enters no gradient graph anyway."""

    def restore(self) -> None:
        """Put back what was there when it was made: something may have interrupted its end or that of `unseen`."""
