"""Where reading a tensor enters no graph, there is nothing to keep out of it and nothing to put back."""

from __future__ import annotations

import pytest

from msprobe_ms.frameworks.quiet import Quiet


def test_errors_inside_are_raised_and_it_may_be_put_back_at_any_time() -> None:
    quiet = Quiet()
    quiet.restore()
    with pytest.raises(ValueError, match="ours"), quiet:
        raise ValueError("ours")
    quiet.restore()
