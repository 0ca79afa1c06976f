"""One node in detail, as text: ``compare --node``."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from msprobe_ms.arrays.worst_elements import rearranged, study
from msprobe_ms.comparison.empty import refuse_empty
from msprobe_ms.comparison.measuring.deviation import furthest_statistic, sketch_deviation
from msprobe_ms.comparison.measuring.tensors import NOTE
from msprobe_ms.comparison.model import Comparison, Pair, Row
from msprobe_ms.comparison.node.arguments import Arguments
from msprobe_ms.comparison.node.lookup import Chosen, Neighbours, choose
from msprobe_ms.comparison.node.words import element_lines, status_lines
from msprobe_ms.comparison.origin.allowances import describe_explanations
from msprobe_ms.comparison.origin.nodes import error_ratio
from msprobe_ms.comparison.origin.search import explanations_tried
from msprobe_ms.comparison.origin.sentences import describe_required
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.comparison.reporting.files import claimed_timestamp, writing
from msprobe_ms.comparison.run import Options, as_paired, compare_dumps, evidence_of
from msprobe_ms.comparison.statistics import DIFFERENCES, RELATIVES, STATISTICS
from msprobe_ms.comparison.terms import Mode, PairedBy
from msprobe_ms.dump.dialects import outside_frameworks
from msprobe_ms.dump.model import Dump, Entry, Item
from msprobe_ms.dump.names import BACKWARD, FORWARD
from msprobe_ms.dump.reading.locate import find_dumps
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.support.errors import CompareError, MsprobeError
from msprobe_ms.support.text import listed, one_a_line, table_lines
from msprobe_ms.support.translation import tr, tr_list

#: Values of a node told element by element, those furthest beyond their tolerance first; consumers and frames told.
_IN_DETAIL, _USERS, _FRAMES, _CALLS = 2, 3, 5, 6
#: What paired two calls → how it is told.
_HOW = {
    PairedBy.NAME: tr("name"),
    PairedBy.AUTOMATIC: tr("automatic"),
    PairedBy.LAYER: tr("layer mapping"),
    PairedBy.CELL: tr("Cell mapping"),
    PairedBy.API: tr("API mapping"),
    PairedBy.DATA: tr("data mapping"),
    PairedBy.SCOPE: tr("scope: calls of one operation inside one call of a module"),
    PairedBy.GROUP: tr("group: several calls on one side are one call on the other"),
}
#: Statistics → how they are told.
_STATISTIC = {"maximum": tr("maximum"), "minimum": tr("minimum"), "mean": tr("mean"), "norm": tr("norm")}
#: Results of the table → how they are told.
_RESULT = {
    "origin": tr("origin"),
    "inherited": tr("inherited"),
    "differs": tr("differs"),
    "agrees": tr("agrees"),
    "random": tr("random"),
    "not judged": tr("not judged"),
    "not compared": tr("not compared"),
    "unmatched": tr("unmatched"),
}
_UNSAFE = re.compile(r"[^\w.@-]")
_LONGEST_NAME = 150
_HEAD = (tr("value"), tr("target"), tr("golden"), tr("deviation"), tr("tolerance"), "")
_NOTHING_BESIDE = tr("where a mapping pairs it, as in the report, give the same -lm, -cm, -am, -dm or -fm here as well")


@dataclass(frozen=True)
class NodeReport:
    """What there is to say of one node, and whether it differs."""

    node: str
    lines: list[str]
    differs: bool


def node_report(target: Path, golden: Path, name: str, options: Options) -> NodeReport:
    """Compare two dumps, each a dump.json or a folder of one rank, and tell of the node that ``name`` means.

    :raises MsprobeError: a dump cannot be read, a side has several ranks, or nothing has this name
    """
    ours, theirs = read_dump(_one(target)), read_dump(_one(golden))
    refuse_empty(ours, theirs)
    ours, theirs, mappings = as_paired(ours, theirs, options)
    comparison = compare_dumps(ours, theirs, replace(options, align=False, mappings=mappings))
    chosen = choose(name, comparison.pairs)
    entry = chosen.named.target or chosen.named.golden
    assert entry is not None
    details = _Details(ours, theirs, mappings, comparison, chosen)
    return NodeReport(entry.name, list(details.lines()), chosen.differs or not chosen.named.matched)


def write_node(report: NodeReport, folder: Path) -> Path:
    """Write ``node_{name}_{YYYYmmddHHMMSS}.txt``, never over another.

    :raises UsageError: the folder cannot be written
    """
    head = f"node_{_UNSAFE.sub('_', report.node)[:_LONGEST_NAME]}_"
    with claimed_timestamp(folder, head) as timestamp, writing(path := folder / f"{head}{timestamp}.txt") as file:
        file.write((one_a_line(report.lines) + "\n").encode())
    return path


def _one(path: Path) -> Path:
    found = find_dumps(path)
    if len(found) > 1:
        raise CompareError(
            tr(
                "{path}: --node looks at one rank, here are {found}; name the folder of one",
                path=path,
                found=tr_list(found),
            )
        )
    return next(iter(found.values()))


class _Details:
    """Says what is known of one node."""

    def __init__(self, target: Dump, golden: Dump, mappings: Mappings, comparison: Comparison, chosen: Chosen) -> None:
        self.target, self.golden = target, golden
        self.comparison, self.chosen = comparison, chosen
        rows = list(chosen.rows)
        self.ours = Neighbours(target, [row.target for row in rows if row.target is not None])
        self.theirs = Neighbours(golden, [row.golden for row in rows if row.golden is not None])
        beyond = [row for row in rows if row.differs or row.explained]
        evidence = evidence_of(comparison.pairs, target, golden, mappings) if beyond else None
        self.tried = explanations_tried(evidence, beyond) if evidence is not None else {}
        both = ((pair.target, pair.golden) for pair in comparison.pairs)
        self.counterparts = {ours.name: theirs.name for ours, theirs in both if ours and theirs}

    def lines(self) -> Iterator[str]:
        named = self.chosen.named
        entry = named.target or named.golden
        assert entry is not None
        yield self.chosen.row.target.name if self.chosen.row and self.chosen.row.target else entry.name
        if named.target is not None and named.golden is not None:
            yield tr(
                "  golden: {name} (pairing: {how})",
                name=named.golden.name,
                how=_HOW.get(named.how or PairedBy.NAME, str(named.how)),
            )
        else:
            yield tr(
                "  only in the {which}: nothing to compare it with",
                which=tr("target") if named.golden is None else tr("golden"),
            )
            yield tr("  {nothing_beside}", nothing_beside=_NOTHING_BESIDE)
        if self.chosen.others:
            also = tr("also {others}", others=listed(self.chosen.others, _CALLS))
            yield tr("  of {count} calls this one differs most; {also}", count=len(self.chosen.others) + 1, also=also)
        yield from (tr("  {line}", line=line) for line in status_lines(self.chosen, self.comparison, self.target))
        if entry.parent:
            yield tr("  called in {parent}", parent=entry.parent)
        for frame in self._frames(entry):
            yield tr("  called at {frame}", frame=frame)
        for pair in self.chosen.pairs:
            yield ""
            yield from self._pair_lines(pair)
        detailed = self._detailed()
        for row in detailed:
            yield ""
            yield from self._row_lines(row)
        others = [row for row in self.chosen.rows if row.matched and row not in detailed]
        if self.chosen.row is None and others and others[0].target is not None:
            yield ""
            yield tr(
                "to see another of these values in full, give its name, for example --node {name}",
                name=others[0].target.name,
            )

    def _frames(self, entry: Entry) -> list[str]:
        dump = self.target if entry.name in self.target.entries else self.golden
        if not entry.stack and entry.parsed is not None and entry.parsed.direction == BACKWARD:
            entry = dump.entries.get(str(entry.parsed.in_direction(FORWARD)), entry)
        return [" ".join(frame.split()) for frame in outside_frameworks(entry.stack)[:_FRAMES]]

    def _pair_lines(self, pair: Pair) -> Iterator[str]:
        entry = pair.target or pair.golden
        assert entry is not None
        yield entry.name
        arguments = Arguments(pair, (self.target.framework, self.golden.framework))
        yield from table_lines([_HEAD, *(_cells(row, entry, pair.golden, arguments) for row in pair.rows)])
        yield from (
            tr("  {explanations}", explanations=describe_explanations(row, self.tried[row], entry.name))
            for row in pair.rows
            if row in self.tried
        )
        for row in pair.rows:
            yield from (tr("  {line}", line=line) for line in self._flow(row, entry))

    def _flow(self, row: Row, entry: Entry) -> Iterator[str]:
        """What made an input, and what takes an output; where the two sides disagree, both."""
        item, golden = row.target, row.golden
        if item is None or item.state not in ("input", "output"):
            return
        if item.state == "input":
            made, other = self.ours.producer(item), self.theirs.producer(golden) if golden is not None else None
            if made is not None:
                yield tr("{suffix} is {name}", suffix=item.name_in(entry.name), name=made.name)
                if other is not None and self.counterparts.get(made.entry, other.entry) != other.entry:
                    yield tr("  but in the golden {name}", name=other.name)
            elif other is not None:
                yield tr(
                    "{suffix} comes from no recorded call; in the golden it is {name}",
                    suffix=item.name_in(entry.name),
                    name=other.name,
                )
        elif users := self.ours.consumers(item):
            yield tr(
                "{suffix} goes to {names}",
                suffix=item.name_in(entry.name),
                names=listed([user.name for user in users], _USERS),
            )

    def _detailed(self) -> list[Row]:
        """The rows to tell in full: the named one, else the worst that differ, else the first output."""
        if self.chosen.row is not None:
            return [self.chosen.row]
        rows = [row for row in self.chosen.rows if row.matched and _is_tensor(row)]
        differing = sorted((row for row in rows if row.differs), key=error_ratio, reverse=True)[:_IN_DETAIL]
        first = [row for row in self.chosen.named.rows if row.target is not None and row.target.state != "input"]
        return differing or [row for row in first if row.matched and _is_tensor(row)][:1]

    def _row_lines(self, row: Row) -> Iterator[str]:
        item = row.target or row.golden
        assert item is not None
        yield item.name
        if row.target is not None and row.golden is not None and row.golden.name != row.target.name:
            yield tr("  golden: {name}", name=row.golden.name)
        yield from _metrics_table(row)
        yield from _deviation_lines(row, measured=self.comparison.mode == Mode.TENSOR)
        if row.reason:
            yield tr("  {result}: {reason}", result=_RESULT.get(row.result, row.result), reason=row.reason)
        if row.differs and row.deviation is not None and math.isfinite(row.deviation):
            yield tr(
                "  {required}; the tolerance applied is {held_to:.3g}",
                required=describe_required(row.deviation, row.held_to),
                held_to=row.held_to,
            )
        if row.target is not None and row.golden is not None and _is_tensor(row):
            yield from (tr("  {line}", line=line) for line in self._elements(row, row.target, row.golden))

    def _elements(self, row: Row, target: Item, golden: Item) -> Iterator[str]:
        if self.comparison.mode != Mode.TENSOR:
            yield tr("elements: the dumps hold none; dump both with task tensor to see which elements differ")
            return
        try:
            mine, theirs = self.target.tensors.load(target), self.golden.tensors.load(golden)
        except (MsprobeError, OSError) as error:
            yield tr("elements: {error}", error=error)
            return
        if mine.shape != theirs.shape:
            how = rearranged(mine, theirs)
            yield tr(
                "elements: shape {shape} against {other_shape}{which}",
                shape=mine.shape,
                other_shape=theirs.shape,
                which=tr(": {how}", how=how) if how else tr(", not compared"),
            )
            return
        for side, dump, item in ((tr("target"), self.target, target), (tr("golden"), self.golden, golden)):
            yield tr("{side} file: {where}", side=side, where=dump.tensors.where(item))
        yield from element_lines(study(mine, theirs), noise=not (row.differs or row.misrecorded))


def _metrics_table(row: Row) -> Iterator[str]:
    """The statistics side by side, then every other metric."""
    table: list[Sequence[str]] = [("", tr("target"), tr("golden"), tr("difference"), tr("relative"))]
    for name, difference, relative in zip(STATISTICS, DIFFERENCES, RELATIVES, strict=True):
        both = [_number(getattr(item, name, None)) for item in (row.target, row.golden)]
        table.append(
            (_STATISTIC.get(name, name), *both, *(_number(row.metrics.get(key)) for key in (difference, relative)))
        )
    md5 = [getattr(item, "md5", None) or "" for item in (row.target, row.golden)]
    if any(md5):
        table.append(("md5", *md5, "", ""))
    yield from table_lines(table, right=True)
    known = {*DIFFERENCES, *RELATIVES, NOTE}
    for name, value in row.metrics.items():
        if name not in known:
            yield f"  {name.replace('_', ' ')}: {_number(value)}"
    if NOTE in row.metrics:
        yield tr("  {metrics}", metrics=row.metrics[NOTE])


def _deviation_lines(row: Row, *, measured: bool) -> Iterator[str]:
    """What the deviation is, where elements were not measured: an estimate of the sketches, or one of the table's."""
    if row.target is None or row.golden is None or not row.deviation or measured:
        return
    estimate = sketch_deviation(row.target, row.golden)
    if estimate is not None and math.isclose(estimate, row.deviation, rel_tol=1e-6):
        yield tr(
            "  deviation: {deviation:.4g}, the norm of target − golden relative to that of golden; an estimate, mostly "
            "right to within 20 %",
            deviation=row.deviation,
        )
    elif name := furthest_statistic(row.target, row.golden):
        yield tr(
            "  deviation: {deviation:.4g}, by the {name}, which differs most for the size of the tensor",
            deviation=row.deviation,
            name=_STATISTIC.get(name, name),
        )


def _number(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.8g}" if isinstance(value, float) else str(value)


def _cells(row: Row, entry: Entry, golden: Entry | None, arguments: Arguments) -> Sequence[str]:
    """One line of the table of an entry; ``golden``: its counterpart, whose item is named where it is another."""
    item = row.target or row.golden
    assert item is not None
    value = item.name_in(entry.name) or tr("itself")
    if row.target is not None and row.golden is not None and golden is not None:
        beside = row.golden.name_in(golden.name) or tr("itself")
        value = value if beside == value else tr("{value} (golden: {beside})", value=value, beside=beside)
    figures = ("", "") if row.deviation is None else (f"{row.deviation:.4g}", f"{row.held_to:.4g}")
    not_given = arguments.not_given(row)
    shown = (_shown(each) if each is not None else not_given or "-" for each in (row.target, row.golden))
    return (value, *shown, *figures, _word(row, arguments.differ(row), not_given))


def _shown(item: Item) -> str:
    if item.kind == "null":
        return "null"
    if item.kind == "value":
        return f"{item.type} {item.maximum}"[:60]
    return f"{item.dtype} {list(item.shape) if isinstance(item.shape, tuple) else item.shape}"


def _word(row: Row, argument_differs: bool, not_given: str) -> str:
    if row.differs or argument_differs:
        return tr("DIFFERS")
    if not row.matched:
        return "" if not_given else tr("no counterpart")
    if row.misrecorded:
        return tr("agrees wherever it is used")
    return "" if row.deviation is None else tr("agrees")


def _is_tensor(row: Row) -> bool:
    return row.target is not None and row.golden is not None and row.target.kind == row.golden.kind == "tensor"
