"""The public names: what completion shows, and what editors, ``help`` and Sphinx read of each."""

from __future__ import annotations

import inspect
import pydoc
from collections.abc import Callable
from typing import Any

import msprobe
import msprobe.mindspore
import msprobe.pytorch
import pytest

import msprobe_ms
import msprobe_ms.maca
import msprobe_ms.mindspore
import msprobe_ms.msit
import msprobe_ms.pytorch
from msprobe_ms.config.model import GENERAL_KEYS
from msprobe_ms.config.vocabulary import DUMP_TASKS, SECTION_KEYS, Selection
from msprobe_ms.support.errors import MsprobeError

MODULES = (msprobe_ms, msprobe_ms.mindspore, msprobe_ms.pytorch)
#: What scripts of other tools import.
OF_OTHER_TOOLS = (msprobe, msprobe.mindspore, msprobe.pytorch, msprobe_ms.maca, msprobe_ms.msit)


def test_completion_shows_the_public_names_and_nothing_else() -> None:
    assert dir(msprobe_ms) == sorted([*msprobe_ms.__all__, "mindspore", "pytorch"])
    assert dir(msprobe_ms.mindspore) == sorted(msprobe_ms.mindspore.__all__)
    assert dir(msprobe_ms.pytorch) == sorted(msprobe_ms.pytorch.__all__)


@pytest.mark.parametrize("module", [*MODULES, *OF_OTHER_TOOLS], ids=lambda module: module.__name__)
def test_every_public_object_tells_of_itself(module: Any) -> None:
    assert inspect.getdoc(module)
    for name in module.__all__:
        if name == "__version__":
            continue
        given = getattr(module, name)
        assert inspect.getdoc(given), name
        assert inspect.signature(given).return_annotation is not None
        assert name in pydoc.render_doc(given, renderer=pydoc.plaintext)
        assert name in pydoc.render_doc(module, renderer=pydoc.plaintext)


def test_the_types_of_record_have_every_key_that_it_takes() -> None:
    of_dumps = {key for key, tasks in SECTION_KEYS.items() if set(tasks) & set(DUMP_TASKS)}
    own_or_refused = {"task", "level", "dump_path", "step", "dump_enable"}
    assert set(Selection.__annotations__) == {*GENERAL_KEYS, *of_dumps} - own_or_refused


def test_a_mistake_stands_under_a_short_traceback() -> None:
    calls: list[Callable[[], Any]] = [
        lambda: msprobe_ms.pytorch.PrecisionDebugger(level="L9"),  # type: ignore[arg-type]
        lambda: msprobe_ms.pytorch.PrecisionDebugger(level="L0").start(None),
    ]
    for call in calls:
        with pytest.raises(MsprobeError) as mistake:
            call()
        assert len(mistake.traceback) <= 5  # two of them are of this test
        assert mistake.value.__cause__ is mistake.value.__context__ is None or mistake.value.__suppress_context__


@pytest.mark.parametrize("module", MODULES[1:], ids=lambda module: module.__name__)
def test_methods_of_the_debugger_tell_of_themselves_before_there_is_one(module: Any) -> None:
    debugger = type("PrecisionDebugger", (module.PrecisionDebugger,), {})
    for method in ("start", "stop", "step", "save", "set_init_step", "monitor"):
        assert getattr(debugger, method).__doc__, method
        assert inspect.signature(getattr(debugger, method))
    assert list(inspect.signature(debugger.start).parameters)[1:] == ["model", "token_range", "rank_id"]
    assert "token_range" in pydoc.render_doc(debugger, renderer=pydoc.plaintext)
