"""What two sparse dumps tell: the first recorded call that is wrong, and what to record next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from msprobe_ms.comparison.many.plan import plan
from msprobe_ms.comparison.model import Pair
from msprobe_ms.comparison.reporting.files import table, write_table
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.translation import tr

#: The report of each round, and its columns: those of the tool whose procedure this is.
REPORT, _PROFILE = "accuracy_report.csv", "maca"


@dataclass(frozen=True, slots=True)
class Ends:
    """The names of one call in both dumps; "" is the beginning of the step."""

    target: str = ""
    golden: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one round found.

    ``bad``    the first call whose results differ by more than they may; None where none does
    ``good``   the last call before it whose results agree
    ``alone``  what goes into the bad call agrees, so that it is the one
    ``first``  the bad call is the first that was recorded, and what goes into it differs: the fault lies before
    ``lone``   the first call that one side alone has, before the bad one; "" for none
    ``parted`` the last call before that whose results agree, and the first that each side alone has
    ``fed``    the first of the bad call's inputs that differs; "" for none
    ``calls``  how many both sides have
    """

    bad: Ends | None
    good: Ends
    alone: bool = False
    first: bool = False
    lone: str = ""
    fed: str = ""
    calls: int = 0
    parted: tuple[Ends, Ends] = (Ends(), Ends())


def decide(target: Path, golden: Path, report: Path | None = None) -> Finding:
    """Compare two dumps of one step of one rank, in the order of execution.

    ``report``: the csv that is to hold the values of both, a line each.

    :raises MsprobeError: there are no dumps, they cannot be read, they are several, or the report cannot be written
    """
    pairs = plan(target, golden).pairs
    if len(pairs) != 1:
        raise UsageError(
            tr(
                "bisect: {target}: {count} ranks and steps are dumped; select one step, and one rank",
                target=target,
                count=len(pairs),
            )
        )
    dumps = read_dump(pairs[0].target), read_dump(pairs[0].golden)
    options = Options(align=dumps[0].framework != dumps[1].framework, profile=_PROFILE)
    comparison = compare_dumps(*dumps, options, one_of_many=True)
    if report is not None:
        report.parent.mkdir(parents=True, exist_ok=True)
        write_table(report, *table(comparison, options.report, stack=True), options.report.colours)
    return _finding(comparison.pairs)


def _finding(pairs: Sequence[Pair]) -> Finding:
    good, lone, parted, seen = Ends(), "", (Ends(), Ends()), 0
    compared = [pair for pair in pairs if pair.target is not None and pair.golden is not None]
    for place, pair in enumerate(pairs):
        if pair.target is None or pair.golden is None:
            if not lone:
                lone, parted = _name_of(pair), (good, _first_alone(pairs[place:]))
            continue
        seen += 1
        ends = Ends(pair.target.name, pair.golden.name)
        results, inputs = _verdicts(pair, inputs=False), _verdicts(pair, inputs=True)
        if not results or all(results.values()):
            good = ends if results else good
            continue
        alone = bool(inputs) and all(inputs.values())
        fed = next((name for name, agrees in inputs.items() if not agrees), "")
        return Finding(ends, good, alone, not alone and seen == 1, lone, fed, len(compared), parted)
    return Finding(None, good, lone=lone, calls=len(compared), parted=parted)


def _name_of(pair: Pair) -> str:
    return next(each.name for each in (pair.target, pair.golden) if each is not None)


def _first_alone(pairs: Sequence[Pair]) -> Ends:
    """The first call of each side that the other has not; "" of a side that has none."""
    return Ends(
        next((pair.target.name for pair in pairs if pair.target is not None and pair.golden is None), ""),
        next((pair.golden.name for pair in pairs if pair.golden is not None and pair.target is None), ""),
    )


def _verdicts(pair: Pair, *, inputs: bool) -> dict[str, bool]:
    """Whether each value that goes into a call, or comes out of it, agrees, by its name in the call."""
    return {
        row.target.suffix: row.deviation <= row.tolerance
        for row in pair.rows
        if (row.state == "output") != inputs
        and row.target is not None and row.deviation is not None and row.tolerance is not None
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Round:
    """What is recorded: all calls from ``after`` to ``until``, every ``skip``-th of them.

    ``whole``: where it is what lies behind the last call of a round in which nothing differed, the ``skip`` of that
    """

    skip: int
    after: Ends = Ends()
    until: Ends = Ends()
    whole: int = 0

    def section(self, side: str) -> dict[str, object]:
        """The keys of a task's section for ``target`` or ``golden``."""
        first, last = (getattr(end, side) or None for end in (self.after, self.until))
        scope = [] if first is None and last is None else [first, last]
        return {"scope": scope, "skip": self.skip if self.skip > 1 else 0}


@dataclass(frozen=True, slots=True)
class Decision:
    """``next`` is the round to record, None at the end; ``said`` is for the user, ``found`` the wrong call."""

    next: Round | None
    said: str
    found: str = ""


def follow(asked: Round, finding: Finding, goods: Sequence[Ends], factor: int) -> Decision:
    """Decide what comes after a round. ``goods``: where the rounds before began, the latest last."""
    if finding.lone and not finding.alone and asked.skip > 1:
        # Sparse recording takes other calls of each side from there on.
        after, until = finding.parted
        closer = Round(max(1, asked.skip // factor), asked.after if after == Ends() else after, until)
        return Decision(closer, tr("the two sides make different calls, {range}", range=_range(closer)))
    if finding.bad is None:
        return _after_agreement(asked, finding, factor)
    return _after_difference(asked, finding, finding.bad, goods, factor)


def _after_agreement(asked: Round, finding: Finding, factor: int) -> Decision:
    """What comes after a round in which every call that both sides have agrees."""
    if finding.lone:
        said = tr("every call that both sides have agrees; {lone} is only on one side", lone=finding.lone)
        return Decision(None, said, finding.lone)
    whole = asked.after == asked.until == Ends()
    said = tr("nothing differs {which}", which=tr("in the step") if whole else _range(asked))
    if asked.whole > 1:
        closer = _closer(Round(asked.whole), factor)
        return Decision(closer, tr("{said}; next, with a smaller distance, from the beginning", said=said))
    if asked.skip <= 1:
        return Decision(None, said)
    if asked.until == Ends() and finding.good not in (Ends(), asked.after):
        behind = Round(1, finding.good, Ends(), asked.skip)
        said = tr("{said} in every {skip}th call; next, the calls after the last of these", said=said, skip=asked.skip)
        return Decision(behind, said)
    # What is wrong may fade before the next call that is recorded.
    said = tr("{said} in every {skip}th call; next, with a smaller distance", said=said, skip=asked.skip)
    return Decision(_closer(asked, factor), said)


def _after_difference(asked: Round, finding: Finding, bad: Ends, goods: Sequence[Ends], factor: int) -> Decision:
    """What comes after a round whose first wrong call is ``bad``."""
    if finding.alone:
        return Decision(None, tr("{target}: its inputs agree, its outputs differ", target=bad.target), bad.target)
    if finding.lone:
        said = tr(
            "from {lone} on the two sides make different calls, before {target}", lone=finding.lone, target=bad.target
        )
        return Decision(None, said, finding.lone)
    if finding.first and asked.after != Ends():
        before = next((each for each in reversed(goods[:-1]) if each != asked.after), Ends())
        said = tr("the inputs of {target} differ already: the range must begin earlier", target=bad.target)
        return Decision(Round(asked.skip, before, bad), said)
    after = finding.good if finding.good != Ends() else asked.after
    between = _range(Round(1, after, bad))
    if asked.skip > 1:
        return Decision(Round(max(1, asked.skip // factor), after, bad), tr("it begins {range}", range=between))
    if finding.fed and finding.good != Ends():
        said = tr(
            "{target}: its {fed} differs, although every call recorded before it agrees",
            target=bad.target,
            fed=finding.fed,
        )
    else:
        said = tr(
            "{target} is the first that differs, {closest}; the calls that produce its inputs were not recorded",
            target=bad.target,
            closest=between,
        )
    return Decision(None, said, bad.target)


def _closer(asked: Round, factor: int) -> Round:
    return Round(max(1, asked.skip // factor), asked.after, asked.until)


def _range(asked: Round) -> str:
    after, until = asked.after.target, asked.until.target
    if after and until:
        return tr("after {after}, at the latest at {until}", after=after, until=until)
    if until:
        return tr("at the latest at {until}", until=until)
    return tr("after {after}", after=after) if after else tr("in the step")
