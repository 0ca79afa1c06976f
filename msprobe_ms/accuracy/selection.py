"""Which calls of a dump are checked; the others with the reason for which they are not."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from msprobe_ms.accuracy.calls import (
    ApiCall,
    Calls,
    RecordedTensor,
    Unknown,
    argument_leaves,
    flat_leaves,
    map_arguments,
)
from msprobe_ms.accuracy.judging.reasons import IN_BLACK_LIST, NOT_IN_WHITE_LIST, same_arguments
from msprobe_ms.dump.dialects import COLLECTIVE_PREFIXES, JIT
from msprobe_ms.support.log import logger
from msprobe_ms.support.text import listed, suggestion
from msprobe_ms.support.translation import tr

_UNCHECKED = Path(__file__).with_name("unchecked.yaml")


@dataclass(frozen=True)
class Selection:
    """``white_list``, ``black_list``  names of APIs, ``sub`` or ``Mint.sub``, or of calls, ``Mint.sub.0``; the black
    list wins, an empty white list names all
    ``once``  of calls with arguments of equal types, dtypes, shapes and values, whatever is in their tensors, the first
    """

    white_list: frozenset[str] = frozenset()
    black_list: frozenset[str] = frozenset()
    once: bool = False


@dataclass
class Selected:
    """``calls`` to check, and the reason for each that is not."""

    calls: list[ApiCall] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)


def select(calls: Calls, selection: Selection) -> Selected:
    """Sort the calls of a dump; names of the lists that are not in it are told to the user."""
    selected = Selected()
    seen: dict[Any, str] = {}
    for call in calls.apis.values():
        reason = reason_against(call, selection)
        if not reason and selection.once:
            first = seen.setdefault(_description(call), call.name)
            reason = same_arguments(first) if first != call.name else ""
        if reason:
            selected.skipped[call.name] = reason
        else:
            selected.calls.append(call)
    _tell_unused(calls, selection)
    return selected


def reason_against(call: ApiCall, selection: Selection) -> str:
    """Return why a call is not checked; "" where it is."""
    names = _names(call)
    if not selection.black_list.isdisjoint(names):
        return IN_BLACK_LIST
    if selection.white_list and selection.white_list.isdisjoint(names):
        return NOT_IN_WHITE_LIST
    if reason := unchecked_reason(call.prefix, call.api):
        return reason
    if call.arguments is None:
        return tr("no forward entry")
    leaves = (*argument_leaves(call.arguments), *flat_leaves(dict(call.attributes)))
    unknown = [leaf.type for leaf in leaves if isinstance(leaf, Unknown)]
    if unknown:
        return tr("an argument was not recorded: {unknown}", unknown=unknown[0][:60])
    if call.api.rpartition(".")[2].startswith("dropout") and not _passes_through(call):
        return tr("random output")
    return ""


def unchecked_reason(prefix: str, api: str) -> str:
    """Return why no call of an API can be judged, whatever its arguments; "" where some can."""
    if prefix in COLLECTIVE_PREFIXES:
        return tr("distributed")
    if prefix == JIT:
        return tr("a compiled function")
    return _unchecked().get(api.rpartition(".")[2], "")


def _passes_through(call: ApiCall) -> bool:
    """Whether a dropout drops nothing, by its arguments."""
    assert call.arguments is not None
    keywords = call.arguments.keywords
    if keywords.get("training") is False or keywords.get("p") == 0:
        return True
    further = [value for value in call.arguments.positional[1:] if not isinstance(value, RecordedTensor)]
    return bool(further) and further[0] == 0


def _names(call: ApiCall) -> set[str]:
    return {call.api, call.api.rpartition(".")[2], f"{call.prefix}.{call.api}", call.name}


@lru_cache(maxsize=1)
def _unchecked() -> dict[str, str]:
    listed_apis = yaml.safe_load(_UNCHECKED.read_text(encoding="utf-8"))
    return {api: tr(reason) for reason, apis in listed_apis.items() for api in apis}


def _description(call: ApiCall) -> Any:
    """What two calls have in common that differ only in the values of tensors."""

    def plain(leaf: Any) -> str:
        return f"{leaf.dtype}{leaf.shape}" if isinstance(leaf, RecordedTensor) else repr(leaf)

    assert call.arguments is not None
    return (
        call.prefix,
        call.api,
        repr((map_arguments(call.arguments, plain), call.attributes)),
        call.output_gradients is not None,
    )


def _tell_unused(calls: Calls, selection: Selection) -> None:
    known = set[str]().union(*map(_names, calls.apis.values())) if calls.apis else set()
    for what, names in ((tr("white"), selection.white_list), (tr("black"), selection.black_list)):
        unused = sorted(names - known)
        if unused:
            hint = suggestion(unused[0], known)
            logger.warning(
                tr(
                    "{path}: no call of {listed}, which the {what} list names{hint}",
                    path=calls.path,
                    listed=listed(unused),
                    what=what,
                    hint=hint,
                )
            )
