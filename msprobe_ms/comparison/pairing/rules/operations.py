"""Apply a mapping of operations: kinds of the target beside kinds of the golden, whatever their calls are named.

Where both dumps call a kind equally often, the first call stands beside the first, the second beside the second. The
file is msit's ``op_mapping_file.json``: ``{"SelfAttentionOperation": ["CoreAttention"], "LinearOperation": "Linear"}``.
A kind is the class of a module, or the name of a function; those that hold it are meant as well. An end ``_outtensor0``
or ``_output_0`` speaks of one result alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from msprobe_ms.dump.model import Dump
from msprobe_ms.dump.names import FORWARD
from msprobe_ms.support.errors import MappingError, UsageError
from msprobe_ms.support.json_files import read_object
from msprobe_ms.support.log import logger
from msprobe_ms.support.text import show
from msprobe_ms.support.translation import tr

_FILE = "op_mapping_file.json"
_LARGEST = 1 << 24
_FORM = tr(
    'expected {"kind in the target": "kind in the golden", or a list of such}, as {"LinearOperation": ["Linear"]}'
)
_KIND = re.compile(r"(?P<kind>\w+?)(?:_out(?:tensor|put_)(?P<result>\d{1,4}))?")


def read_operations(path: Path) -> dict[str, tuple[str, ...]]:
    """Read a mapping file, or the one of its name in a folder. Raises MappingError."""
    file = path / _FILE if path.is_dir() else path
    try:
        content = read_object(file, _LARGEST, _FORM)
    except UsageError as error:
        raise MappingError(tr("{error}", error=error)) from error
    rules = {}
    for kind, named in content.items():
        kinds = [named] if isinstance(named, str) else named
        if not isinstance(kinds, list) or not all(
            isinstance(each, str) and _KIND.fullmatch(each) for each in (kind, *kinds)
        ):
            raise MappingError(
                tr(
                    "{file}: {kind}: {named} is not accepted; {form}",
                    file=file,
                    kind=show(kind),
                    named=show(named),
                    form=_FORM,
                )
            )
        rules[kind] = tuple(kinds)
    return rules


def by_operation(rules: Mapping[str, tuple[str, ...]], target: Dump, golden: Dump) -> dict[str, str | None]:
    """Return the rules as a data mapping of these dumps; those whose kinds are not called equally often are told."""
    found: dict[str, str | None] = {}
    if not rules:
        return found
    mine, its = _Calls(target), _Calls(golden)
    for kind, others in rules.items():
        ours, our_result = mine.of(kind)
        for other in others:
            theirs, their_result = its.of(other)
            if len(ours) != len(theirs):
                told = tr(
                    "operation mapping: the target calls {kind} {ours} times, the golden {other} {theirs} times: "
                    "not paired",
                    kind=kind, ours=len(ours), other=other, theirs=len(theirs),
                )  # fmt: skip
                logger.warning(told)
                continue
            for one, two in zip(ours, theirs, strict=True):
                if our_result is not None or their_result is not None:
                    found[f"{one}.output.{our_result or 0}"] = f"{two}.output.{their_result or 0}"
                else:
                    found.update(_both_directions(one, two, target, golden))
    return found


class _Calls:
    """The forward entries of a dump by the kind of what was called, each in their order."""

    def __init__(self, dump: Dump) -> None:
        self._by_kind: dict[str, list[tuple[int, str]]] = {}
        for place, (name, entry) in enumerate(dump.entries.items()):
            parsed = entry.parsed
            if parsed is not None and parsed.direction == FORWARD:
                kind = (parsed.class_name or parsed.name).rpartition(".")[2]
                self._by_kind.setdefault(kind, []).append((place, name))

    def of(self, text: str) -> tuple[list[str], str | None]:
        """Those of just this kind, else of kinds that hold it; and of which result a rule speaks."""
        parts = _KIND.fullmatch(text)
        kind, result = (text, None) if parts is None else (parts["kind"], parts["result"])
        found = self._by_kind.get(kind) or sorted(
            call for each, calls in self._by_kind.items() if kind in each for call in calls
        )
        return [name for _, name in found], result


def _both_directions(mine: str, its: str, target: Dump, golden: Dump) -> Iterator[tuple[str, str]]:
    yield mine, its
    backward = [name.replace(f".{FORWARD}", ".backward") for name in (mine, its)]
    if backward[0] in target.entries and backward[1] in golden.entries:
        yield backward[0], backward[1]
