"""Show a recorded step in a notebook: its calls with what they gave out, as a table in which every text is escaped."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import islice

from msprobe_ms.dump.model import Dump, Entry, Item
from msprobe_ms.dump.names import counted_entries
from msprobe_ms.page.template import escaped

#: Calls of the table; the rest is counted.
_MOST = 100
_TITLES = ("call", "gives", "type", "max", "min", "mean", "norm")
#: The first of them are texts, which notebooks would align at their right.
_TEXTS, _LEFT = 3, ' style="text-align:left"'
_NOT_FINITE = "background:#d5500033"


def recording_html(dump: Dump) -> str:
    """Return the calls of a dump with their results, those that are not finite marked; the first ones of many."""
    lines = [line for entry in islice(dump.entries.values(), _MOST) for line in _lines(entry)]
    head = f"<div><b>{escaped(counted_entries(len(dump.entries)))}</b> in {escaped(str(dump.path.parent))}</div>"
    more = f"<div>and {len(dump.entries) - _MOST} more</div>" if len(dump.entries) > _MOST else ""
    titles = "".join(_cells("th", _TITLES))
    return f"{head}<table><thead><tr>{titles}</tr></thead><tbody>{''.join(lines)}</tbody></table>{more}"


def _lines(entry: Entry) -> Iterator[str]:
    results = [item for item in entry.items if item.state not in ("input", "parameters")] or list(entry.items)[:1]
    for place, item in enumerate(results):
        figures = (item.maximum, item.minimum, item.mean, item.norm)
        finite = all(math.isfinite(figure) for figure in figures if isinstance(figure, (int, float)))
        cells = ("" if place else entry.name, item.suffix, _type(item), *map(_figure, figures))
        row = "".join(_cells("td", cells))
        yield f"<tr>{row}</tr>" if finite else f'<tr style="{_NOT_FINITE}">{row}</tr>'


def _cells(tag: str, texts: Iterable[str]) -> Iterator[str]:
    for place, text in enumerate(texts):
        yield f"<{tag}{_LEFT if place < _TEXTS else ''}>{escaped(text)}</{tag}>"


def _type(item: Item) -> str:
    if item.kind != "tensor":
        return item.type or "nothing"
    return f"{item.dtype} {list(item.shape) if isinstance(item.shape, tuple) else item.shape}"


def _figure(figure: object) -> str:
    if isinstance(figure, float):
        return f"{figure:.6g}"
    return "" if figure is None else str(figure)
