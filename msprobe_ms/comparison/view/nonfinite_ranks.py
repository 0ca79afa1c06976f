"""Which rank and call of a step brought the first NaN, and whether before, in, or after an exchange between ranks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from msprobe_ms.comparison.kernels.first_nonfinite import (
    NonFiniteValue,
    first_nan,
    made_by_its_entry,
    search,
    source_of,
    takes_infinity,
    write_anomalies,
)
from msprobe_ms.comparison.many.first_rank import Exchanges, exchanges_among, first_by_themselves, names_of
from msprobe_ms.dump.model import Dump
from msprobe_ms.dump.reading.locate import find_places
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.support.translation import tr, tr_count

#: When a rank's first value that is not finite comes, seen from the exchanges between ranks.
BEFORE, DURING = tr("before communication"), tr("during communication")
AFTER = tr("after communication")


@dataclass(frozen=True)
class RankValue:
    """The first value of one rank that is not finite.

    ``handed_by``  the exchange that it came out of; "" for none
    ``infinity``   of a NaN whose call takes in an infinity: the first infinity of the rank
    """

    value: NonFiniteValue
    phase: str
    handed_by: str
    infinity: NonFiniteValue | None = None


@dataclass(frozen=True)
class NonFiniteStep:
    """One step of all ranks.

    ``found``  rank → its first value that is not finite; ranks whose values are all finite are not in it
    ``first``  the ranks that made it themselves at the earliest moment; none where an exchange itself did, or a rank
               that was not recorded
    ``ranks``  how many were searched
    ``earlier``  the last step before this one in which a rank held such a value; None where there is none
    ``searched``  how many entries were searched: nothing is known where there is none
    """

    step: int | None
    found: Mapping[str, RankValue]
    first: Sequence[str]
    ranks: int
    kind: str
    earlier: int | None = None
    searched: int = 1


def analyze(path: Path) -> list[NonFiniteStep]:
    """Search every step below ``path``: a dump of many ranks, or one of its steps. One answer a step.

    :raises MsprobeError: there is no dump, or one cannot be read
    """
    steps: dict[int | None, dict[str, Path]] = {}
    for place, file in find_places(path).items():
        steps.setdefault(place.step, {})[place.rank or "rank0"] = file
    answers: list[NonFiniteStep] = []
    for step, files in sorted(steps.items(), key=lambda each: each[0] or 0):
        answer = _analyze_step(step, files)
        before = [each.step for each in answers if each.found and each.kind == answer.kind]
        answers.append(replace(answer, earlier=before[-1] if before else None))
    return answers


def _analyze_step(step: int | None, files: Mapping[str, Path]) -> NonFiniteStep:
    # Infinities may be meant, as in masks: where there is a NaN, it is what is looked for.
    nan, any_kind, searched = _Candidates(), _Candidates(), 0
    for rank, file in files.items():
        dump = read_dump(file, sketches=False)
        answer = search(dump)
        searched += answer.searched
        first = answer.first or answer.outside
        nan.add(rank, dump, first_nan(dump), infinity=first)
        any_kind.add(rank, dump, first)
    kind, chosen = ("NaN", nan) if nan.values else ("infinity", any_kind)
    found = {
        rank: RankValue(value, *_phase(chosen.exchanges[rank]), chosen.infinities.get(rank))
        for rank, value in chosen.values.items()
    }
    return NonFiniteStep(step, found, first_by_themselves(chosen.exchanges), len(files), kind, searched=searched)


class _Candidates:
    """The first value of each rank of one kind, and the exchanges of all ranks."""

    def __init__(self) -> None:
        self.values: dict[str, NonFiniteValue] = {}
        self.exchanges: dict[str, Exchanges] = {}
        self.infinities: dict[str, NonFiniteValue] = {}

    def add(
        self, rank: str, dump: Dump, value: NonFiniteValue | None, *, infinity: NonFiniteValue | None = None
    ) -> None:
        """Add what was found in a rank; ``infinity``: its first value that is not finite, of whatever kind."""
        if value is None:
            self.exchanges[rank] = exchanges_among(dump.entries.values(), None, "", "")
            return
        self.values[rank] = value
        if infinity is not None and takes_infinity(dump.entries[value.entry]):
            self.infinities[rank] = infinity
        place = list(dump.entries).index(value.entry)
        state = "output" if value.item.startswith("output") else "input"
        self.exchanges[rank] = exchanges_among(dump.entries.values(), place, state, f"{value.entry}.{value.item}")


def _phase(exchanges: Exchanges) -> tuple[str, str]:
    phase = DURING if exchanges.handed_by else AFTER if exchanges.before else BEFORE
    return phase, exchanges.handed_by


def write_analysis(steps: Sequence[NonFiniteStep], folder: Path) -> Path:
    """Write ``anomaly_analyze_nan_analyze_{YYYYmmddHHMMSS}.json``: by step the verdict and each rank's first value.

    :raises UsageError: the folder cannot be written
    """
    content = {("step" if each.step is None else f"step{each.step}"): _content(each) for each in steps}
    return write_anomalies("nan_analyze", content, folder)


def _content(step: NonFiniteStep) -> dict[str, object]:
    ranks = {
        rank: {
            "op_name": each.value.entry, "data_info": {each.value.item: each.value.holds},
            "stack_info": each.value.called, "phase": each.phase, "handed_by": each.handed_by, "cell": each.value.cell,
        }
        for rank, each in step.found.items()
    }  # fmt: skip
    return {"verdict": next(analysis_lines(step)), "first": list(step.first), "ranks": ranks}


def _word(kind: str) -> str:
    return tr("NAN") if kind == "NaN" else tr("INFINITY")


def _head(step: NonFiniteStep, at: str) -> str:
    """How the verdict begins; of a later step it does not say that this is the first one."""
    if step.earlier is None:
        return tr("{kind}: first{at}", kind=_word(step.kind), at=at)
    kind = "NaN" if step.kind == "NaN" else tr("infinity")
    return tr("step {step}: {kind} first", step=step.step, kind=kind)


def _first_lines(step: NonFiniteStep, head: str) -> Iterator[str]:
    """Where it is first, and what brought it there."""
    rank = step.first[0]
    each = step.found[rank]
    others = tr(" (and {names_of} at the same time)", names_of=names_of(step.first[1:])) if len(step.first) > 1 else ""
    yield tr(
        "{head} on {rank}{others}{phase}, at {item}",
        head=head,
        rank=rank,
        others=others,
        phase=tr(", {phase}", phase=each.phase) if step.ranks > 1 or each.phase != BEFORE else "",
        item=f"{each.value.entry}.{each.value.item}".rstrip("."),
    )
    if not made_by_its_entry(each.value):
        yield tr("  no recorded call made it: it came from {source}", source=source_of(each.value))
        if step.earlier is not None:
            yield tr(
                "  step {earlier} had {kind} already, which an update may have carried into the weights",
                earlier=step.earlier,
                kind="NaN" if step.kind == "NaN" else tr("infinity"),
            )
    if each.infinity is not None:
        yield _infinity_line(each.infinity)
    yield from (
        tr("  {title} {text}", title=title, text=text)
        for title, text in ((tr("in"), each.value.cell), (tr("called at"), each.value.called))
        if text
    )


def _infinity_line(infinity: NonFiniteValue) -> str:
    item = f"{infinity.entry}.{infinity.item}"
    if made_by_its_entry(infinity):
        return tr("  its inputs already hold an infinity; the first one is in {item}", item=item)
    return tr(
        "  its inputs already hold an infinity; the first one came from {source} and is in {item}",
        source=source_of(infinity),
        item=item,
    )


def analysis_lines(step: NonFiniteStep) -> Iterator[str]:
    """Say which rank and call produced the first NaN of a step, and how it spread."""
    at = "" if step.step is None else tr(" in step {step}", step=step.step)
    if not step.searched:
        yield tr("NOTHING RECORDED{at}: nothing is known of its values", at=at)
        return
    if not step.found:
        yield tr_count(
            "FINITE: every value of {count} rank{at}", "FINITE: every value of {count} ranks{at}", step.ranks, at=at
        )
        return
    head = _head(step, at)
    handed = {rank: each for rank, each in step.found.items() if each.handed_by}
    own = [rank for rank in step.found if rank not in handed and rank not in step.first]
    if step.first:
        yield from _first_lines(step, head)
    else:
        through = next(iter(handed.values()))
        yield (
            tr(
                "{head} in the result of {handed_by} on {names_of}, although their inputs to "
                "it are finite: the exchange itself produced it, or a rank that was not recorded",
                head=head,
                handed_by=through.handed_by,
                names_of=names_of(list(handed)),
            )
        )
    if handed and step.first:
        through = next(iter(handed.values()))
        yield tr(
            "  {names_of} received it through {handed_by}",
            names_of=names_of(list(handed)),
            handed_by=through.handed_by,
        )
    if own:
        yield tr("  later, by their own computation, also {names_of}", names_of=names_of(own))
    if clean := step.ranks - len(step.found):
        yield tr("  {clean} of {ranks} ranks hold finite values alone", clean=clean, ranks=step.ranks)
