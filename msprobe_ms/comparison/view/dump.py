"""One dump alone as a page to look at: its values along the execution, and where NaN and infinity come from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO

from msprobe_ms.comparison.kernels.first_nonfinite import FirstNonFinite, NonFiniteValue, search
from msprobe_ms.comparison.model import Comparison, Pair, Row
from msprobe_ms.comparison.page.calls import Calls
from msprobe_ms.comparison.page.content import Content
from msprobe_ms.comparison.page.rows import Rows
from msprobe_ms.comparison.page.verdict import dump_text, made_by, provenance_html, without_paths
from msprobe_ms.comparison.terms import Mode
from msprobe_ms.dump.columns import ItemSlice
from msprobe_ms.dump.model import Dump, Entry
from msprobe_ms.dump.names import counted_entries
from msprobe_ms.page.template import escaped, write_page
from msprobe_ms.support.translation import tr, tr_count, translated

_SENTENCE = 2_000


def write_dump(file: BinaryIO, dump: Dump, *, all_rows: bool = False, stacks: bool = True) -> FirstNonFinite:
    """Write the page of a dump; return where it is not finite first. The others as of a comparison."""
    comparison = Comparison(Mode(dump.mode), [Pair(entry, None, list(_rows(entry))) for entry in dump.entries.values()])
    answer = search(dump)
    content = Content(comparison, dump, all_rows=all_rows, stacks=stacks)
    damage = dump.damage if stacks else without_paths(dump.damage, {"dump": dump})
    if not stacks:
        answer = _without_places(answer)
    about = [(tr("dump"), dump_text(dump, path=stacks)), (tr("made by"), made_by())]
    title = tr("{name}: {headline}", name=dump.path.parent.name, headline=_headline(dump, answer))
    found = (answer.first, answer.first_nan, answer.outside)
    index = {
        **content.index,
        "title": translated(title),
        "verdict": "",
        "origins": [_origin(each, content.calls, content.rows) for each in found if each],
        "provenance": [tuple(map(translated, each)) for each in about],
    }
    write_page(
        file, title=title, header=_header(dump, answer, damage), provenance=provenance_html(about, stacks=stacks),
        index=index, columns=content.columns,
    )  # fmt: skip
    return answer


def _without_places(answer: FirstNonFinite) -> FirstNonFinite:
    """Return an answer without files and lines of source code."""
    first, first_nan, outside = (
        each and replace(each, file="", called="") for each in (answer.first, answer.first_nan, answer.outside)
    )
    return replace(answer, dump="dump", first=first, first_nan=first_nan, outside=outside)


def _rows(entry: Entry) -> Iterator[Row]:
    """The entry's items as rows without a counterpart; those of a table by their numbers, which takes less memory."""
    items = entry.items
    if isinstance(items, ItemSlice):
        tables = items.table, items.table
        yield from (Row(number, None, tables=tables) for number in range(items.start, items.stop))
    else:
        yield from (Row(item, None) for item in items)


def _headline(dump: Dump, answer: FirstNonFinite) -> str:
    if answer.first is not None:
        return tr(
            "{holds} first at {entry}.{item}",
            holds=answer.first.holds,
            entry=answer.first.entry,
            item=answer.first.item,
        )
    if answer.entries:
        return tr("{entries} entries hold what is not finite", entries=answer.entries)
    if dump.task == "overflow_check":
        return tr("overflow_check found no NaN and no infinity")
    if not answer.searched:
        return tr("nothing was recorded, so nothing is known of its values")
    return tr("{counted_entries}, every value finite", counted_entries=counted_entries(len(dump.entries)))


def _header(dump: Dump, answer: FirstNonFinite, damage: str) -> str:
    """The static part: what was recorded, and the first value that is not finite."""
    kind = "divergent" if answer.entries else "consistent"
    told = "".join(f'<p class="reason">{escaped(text, _SENTENCE)}</p>\n' for text in _sentences(answer, damage))
    return (
        f'<header id="verdict" class="{kind}">\n<h1>{escaped(_headline(dump, answer), _SENTENCE)}</h1>\n'
        f"{told}{_places(answer)}</header>"
    )


def _sentences(answer: FirstNonFinite, damage: str) -> Iterator[str]:
    if damage:
        yield damage
    if answer.first is not None:
        yield tr(
            "{item} holds {holds}, although the inputs of the call are finite",
            item=answer.first.item,
            holds=answer.first.holds,
        )
    if answer.first_nan is not None:
        where = f"{answer.first_nan.entry}.{answer.first_nan.item}"
        yield tr(
            "the first NaN that a call computes from inputs without NaN is {where} (an infinity can "
            "be intended, as in a mask)",
            where=where,
        )
    if answer.outside is not None:
        where = f"{answer.outside.entry}.{answer.outside.item}"
        yield tr(
            "no recorded call made the {holds} at {where}: look at input data, weights, and code that was not recorded",
            holds=answer.outside.holds,
            where=where,
        )
    if answer.entries:
        yield tr_count(
            "{entries} of the dump holds what is not finite",
            "{entries} of the dump hold what is not finite",
            answer.entries,
            entries=counted_entries(answer.entries),
        )


def _places(answer: FirstNonFinite) -> str:
    """Where the first of them is."""
    first = answer.first or answer.first_nan or answer.outside
    if first is None:
        return ""
    places = (
        (tr("in"), first.cell), (tr("scope"), first.scope), (tr("file"), first.file), (tr("called at"), first.called),
    )  # fmt: skip
    told = "".join(f"<dt>{escaped(name)}</dt><dd><bdi>{escaped(text)}</bdi></dd>" for name, text in places if text)
    return f'<dl class="places">{told}</dl>\n'


def _origin(value: NonFiniteValue, calls: Calls, rows: Rows) -> dict[str, object]:
    call = calls.find(value.entry)
    place = None
    if call is not None:
        first = int(rows.starts[call])
        suffixes = [row.target.suffix if row.target else "" for row in calls.pairs[call].rows]
        place = first + suffixes.index(value.item) if value.item in suffixes else None
    return {
        "call": call,
        "row": place,
        "kind": "not finite",
        "stage": None,
        "reason": tr(
            "{item} holds {holds}, although the inputs of the call are finite", item=value.item, holds=value.holds
        ),
        "details": [],
        "site": value.called,
        "command": "",
    }
