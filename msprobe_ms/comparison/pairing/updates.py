"""Match what optimizers made of parameters: by the module that holds the parameter, and the parameter's meaning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msprobe_ms.comparison.pairing.modules import Destination, Module
from msprobe_ms.dump.model import Entry
from msprobe_ms.dump.names import EntryName, is_update

#: Names MindSpore gives a parameter → the name PyTorch gives the parameter of the same meaning.
PARAMETER_SYNONYMS: Mapping[str, str] = {
    "gamma": "weight",
    "beta": "bias",
    "embedding_table": "weight",
    "moving_mean": "running_mean",
    "moving_variance": "running_var",
}

#: Path of a parameter in PyTorch's words, and which call of its optimizer.
_Key = tuple[str, int | None]


def pair_updates(
    target: Mapping[str, Entry], golden: Mapping[str, Entry], destinations: Mapping[Module, Destination]
) -> dict[str, str]:
    """Return the golden entry of each update of the target that has one."""
    theirs = {_key(parsed, {}): name for name, parsed in _updates(golden)}
    if not theirs:
        return {}
    moved = {path: found.module[0] for (path, _), found in destinations.items()}
    pairs = ((name, theirs.get(_key(parsed, moved))) for name, parsed in _updates(target))
    return {name: other for name, other in pairs if other is not None}


def _updates(entries: Mapping[str, Entry]) -> Iterator[tuple[str, EntryName]]:
    return ((name, entry.parsed) for name, entry in entries.items() if entry.parsed and is_update(entry.parsed))


def _key(parsed: EntryName, moved: Mapping[str, str]) -> _Key:
    """``moved``: path of a module → where its counterpart stands."""
    module, _, name = parsed.name.rpartition(".")
    return f"{moved.get(module, module)}.{PARAMETER_SYNONYMS.get(name, name)}", parsed.index
