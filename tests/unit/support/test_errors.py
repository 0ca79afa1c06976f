"""Errors that reach a script: their text is in the language of its user."""

from __future__ import annotations

import pytest

from msprobe_ms.support.errors import UsageError, told_briefly
from msprobe_ms.support.translation import speaking, tr


def test_an_error_is_told_to_a_script_in_the_language_of_its_user() -> None:
    @told_briefly
    def refuse(given: str) -> None:
        raise UsageError(tr("accepted are {accepted}", accepted=given))

    with speaking("zh"), pytest.raises(UsageError) as refused:
        refuse("a")
    assert str(refused.value) == "可接受 a"
    with speaking("en"), pytest.raises(UsageError) as refused:
        refuse("a")
    assert str(refused.value) == "accepted are a"
    assert len(refused.traceback) == 2
