"""Write the pairing of a comparison as a data mapping: to be read, corrected and given back with ``-dm``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from msprobe_ms.comparison.model import Pair
from msprobe_ms.comparison.terms import PairedBy
from msprobe_ms.dump.names import JOINED
from msprobe_ms.support.files import replacing
from msprobe_ms.support.yaml_files import quoted

_HEADER = """\
# What stood beside what, and behind it what said so: data, api, layer or cell mapping, automatic, name, scope (calls of
# one meaning inside one call of a module), group (several calls that are one of the other side). null: nothing.
# Corrected, this is a data mapping: msprobe compare ... -dm {name}
"""
#: Names that mean themselves in yaml, whatever stands around them.
_PLAIN = re.compile(r"[A-Za-z]\w*(\.\w+)+", re.ASCII)
#: Characters of a key without a mark, quotes and all.
_LONGEST_KEY = 1000
#: What may pair items otherwise than their entries alone would, so that they are written item by item.
_ITEM_BY_ITEM = (PairedBy.DATA, PairedBy.API)


def write_pairing(pairs: Sequence[Pair], output: Path, timestamp: str, name_suffix: str = "") -> list[Path]:
    """Write ``data_mapping{suffix}_{timestamp}.yaml``; nothing, and [], where both names of every pair are equal."""
    if all(pair.target.name == pair.golden.name for pair in pairs if pair.target and pair.golden):
        return []
    path = output / f"data_mapping{name_suffix}_{timestamp}.yaml"
    with replacing(path) as file:
        file.write(_HEADER.format(name=path.name).encode())
        file.writelines(f"{line}\n".encode() for pair in pairs for line in _lines(pair))
    return [path]


def _lines(pair: Pair) -> list[str]:
    target, golden = pair.target, pair.golden
    if target is None:
        return [f"# only in the golden: {_spelled(golden.name)}"] if golden is not None else []
    if golden is None:
        return [f"{_key(target.name)} null"]
    if pair.how == PairedBy.GROUP and (lines := _group(pair)):
        return lines
    if pair.how in _ITEM_BY_ITEM and (lines := _items(pair)):
        return lines
    return [f"{_key(target.name)} {_spelled(golden.name)} # {pair.how}"]


def _group(pair: Pair) -> list[str]:
    """Several lines with one golden entry, or one line with several."""
    ours = dict.fromkeys(row.target.entry for row in pair.rows if row.target is not None)
    theirs = dict.fromkeys(row.golden.entry for row in pair.rows if row.golden is not None)
    golden = _spelled(JOINED.join(theirs))
    return [f"{_key(name)} {golden} # {pair.how}" for name in ours]


def _items(pair: Pair) -> list[str]:
    both = [(row.target, row.golden) for row in pair.rows if row.target is not None]
    return [f"{_key(mine.name)} {_spelled(other.name) if other else 'null'} # {pair.how}" for mine, other in both]


def _key(name: str) -> str:
    spelled = _spelled(name)
    # Beyond 1,024 characters yaml asks for the mark of a key.
    return f"{spelled}:" if len(spelled) < _LONGEST_KEY else f"? {spelled}\n:"


def _spelled(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else quoted(name)
