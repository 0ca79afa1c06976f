"""One comparison from two paths to a verdict: read → pair → measure → find origins → judge → report."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal

from msprobe_ms.arrays.custom_metrics import Algorithm
from msprobe_ms.comparison.empty import refuse_empty
from msprobe_ms.comparison.measuring.measure import Progress, measure
from msprobe_ms.comparison.measuring.tensors import load_both
from msprobe_ms.comparison.model import Comparison, Mapped, Outcome, Pair
from msprobe_ms.comparison.origin.causes.slow_drift import steepest
from msprobe_ms.comparison.origin.earlier_steps import EarlierSteps
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.far_apart import inputs_far_apart
from msprobe_ms.comparison.origin.search import find_origins, split_random
from msprobe_ms.comparison.origin.sentences import name_fused_parts, note_shifted_calls
from msprobe_ms.comparison.pairing.coverage import (
    anything_compared,
    early_ends,
    is_incomplete,
    sides_without_values,
    unmatched_modules,
)
from msprobe_ms.comparison.pairing.fused_modules import join_fused
from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.comparison.pairing.shares import shares_of
from msprobe_ms.comparison.reporting.profiles import judge
from msprobe_ms.comparison.reporting.profiles.base import Profile
from msprobe_ms.comparison.reporting.thresholds import Thresholds
from msprobe_ms.comparison.reports import write_reports
from msprobe_ms.comparison.row_items import RowItems
from msprobe_ms.comparison.terms import Mode, Verdict
from msprobe_ms.dump.model import Dump
from msprobe_ms.dump.names import is_of_training, parse_entry
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.support.log import logger
from msprobe_ms.support.process import no_garbage_collection
from msprobe_ms.support.translation import tr

#: Pairs from which on a progress bar is worth its line; and only real data takes long enough.
_LONG = 500
#: Entries of both dumps up to which a mapping is found unasked: it then takes less than a second.
_MOST_ENTRIES = 30_000


@dataclass(frozen=True)
class Options:
    """How to compare and what to write.

    ``align`` finds out which module is which, for those that the mappings say nothing of. ``forward_only`` leaves out
    what only a training has: gradients, updates and the loss. ``log_values`` logs what is found of each value.
    ``profile`` names the columns and rules: ``v110``, ``latest`` or ``own``; ``thresholds`` are changes to its figures
    and to the tolerances; ``algorithms`` are the user's own metrics of real data. ``html`` writes the page to look at,
    ``html_rows`` with the figures of all rows, however many, ``html_stacks`` with call sites and paths. ``advice_form``
    is not the profile's: that of MindStudio's analyzer. ``arguments`` of the command compare ask for the same pairing
    and measuring; None where files of them are gone.
    """

    mappings: Mappings = field(default_factory=Mappings)
    align: bool = False
    forward_only: bool = False
    fuzzy: bool = False
    profile: str = "own"
    thresholds: Thresholds = field(default_factory=Thresholds)
    algorithms: tuple[Algorithm, ...] = ()
    csv: bool = False
    stack: bool = False
    advice: bool = False
    advice_form: Literal["mindstudio"] | None = None
    html: bool = False
    html_rows: Literal["all"] | None = None
    html_stacks: bool = True
    log_values: bool = False
    arguments: tuple[str, ...] | None = None

    def command(self, target: Path, golden: Path) -> tuple[str, ...]:
        """Return the words of the command that compares two dumps so; none where no command does."""
        if self.arguments is None:
            return ()
        return "msprobe", "compare", "-tp", str(target), "-gp", str(golden), *self.arguments

    @property
    def report(self) -> Profile:
        """The profile with this run's thresholds and metrics."""
        return self.thresholds.profile(self.profile, self.algorithms)


@no_garbage_collection()
def compare_dumps(
    target: Dump,
    golden: Dump,
    options: Options,
    *,
    one_of_many: bool = False,
    after: int | None = None,
    earlier: EarlierSteps | None = None,
) -> Comparison:
    """Pair, measure and judge two dumps already read.

    ``one_of_many``: others are compared beside it, so that it shows no bar in a terminal when it takes long, begins no
    processes when there are many tensors, and leaves warnings of what all of them share to who compares them.
    ``after``: an earlier step of this rank that diverges; values that differ now inherit that. ``earlier``: the steps
    before, where they were looked for already.

    :raises CompareError: a dump is empty
    """
    refuse_empty(target, golden)
    earlier = EarlierSteps.of(target, golden) if earlier is None else earlier
    if target.mode == golden.mode:
        mode = Mode(target.mode)
    else:
        mode = Mode.STATISTICS
        logger.info(
            tr(
                "target is a {mode} dump and golden a {other_mode} dump: statistics are compared",
                mode=target.mode,
                other_mode=golden.mode,
            )
        )
    target, golden, mappings = as_paired(target, golden, options, earlier, tell=not one_of_many)
    pairs = pair(target, golden, mappings, fuzzy=options.fuzzy)
    profile = options.report
    if options.algorithms and mode != Mode.TENSOR:
        names = ", ".join(algorithm.name for algorithm in options.algorithms)
        logger.warning(tr("{names} not measured: that needs two dumps of task tensor", names=names))
    with _progress(len(pairs), shown=not one_of_many) as tell:
        sides = measure(
            pairs, target, golden, mode, tell, tolerances=options.thresholds.tolerances(),
            more=profile.more_metrics, algorithms=profile.algorithms, processes=not one_of_many,
        )  # fmt: skip
    damage = [
        tr("{side}: {damage}", side=side, damage=dump.damage)
        for side, dump in ((tr("target"), target), (tr("golden"), golden))
        if dump.damage
    ]
    evidence = evidence_of(pairs, target, golden, mappings, earlier, sides)
    origins, random = split_random(find_origins(evidence))
    for node in evidence.nodes:
        node.pair.given = node.ratio_out
        node.pair.taken = node.ratio_taken if node.ratio_out > 1 else node.ratio_in
    comparison = Comparison(
        mode, pairs, random=random, damage=damage, asked=evidence.asked, updated=evidence.updated,
        mapped=Mapped(mappings.files, options.align),
        earlier=evidence.earlier is not None and evidence.earlier.were_recorded,
    )  # fmt: skip
    comparison.far_apart = 0 if origins or random else inputs_far_apart(evidence)
    comparison.growth = str((comparison.far_apart and steepest(evidence.nodes)) or "")
    evidence.release()
    del evidence  # its nodes take as much memory as the entries
    origins = origins if options.fuzzy else note_shifted_calls(origins, pairs)
    comparison.origins = name_fused_parts(origins, pairs, target, golden)
    comparison.ends = [] if damage else early_ends(pairs, target, golden)
    comparison.shares = shares_of(pairs)
    if sides is not None:
        comparison.sides = sides
    if after is not None and any(row.differs for row in comparison.rows):
        comparison.inherits = after
    comparison.verdict = verdict_of(comparison)
    judge(comparison, profile)
    if options.log_values:
        _log_values(comparison)
    return comparison


def _log_values(comparison: Comparison) -> None:
    for row in comparison.rows:
        item = row.target or row.golden
        if item is not None:
            logger.info("%s: %s", item.name, ", ".join(filter(None, (row.result, row.reason))))


def evidence_of(
    pairs: list[Pair],
    target: Dump,
    golden: Dump,
    mappings: Mappings,
    earlier: EarlierSteps | None = None,
    sides: tuple[RowItems, RowItems] | None = None,
) -> Evidence:
    """The measured pairs of two dumps, as the search for origins takes them, and the step before, where it is there.

    ``sides``: the items of all rows, where they were put side by side.
    """
    earlier = EarlierSteps.of(target, golden) if earlier is None else earlier
    load = partial(load_both, target.tensors, golden.tensors) if target.mode == golden.mode == Mode.TENSOR else None
    return Evidence(
        pairs, list(golden.entries.values()), load,
        damaged=bool(target.damage or golden.damage), earlier=earlier.as_paired(mappings),
        dumps=(target, golden), frameworks=(target.framework, golden.framework), sides=sides,
    )  # fmt: skip


def as_paired(
    target: Dump, golden: Dump, options: Options, earlier: EarlierSteps | None = None, *, tell: bool = False
) -> tuple[Dump, Dump, Mappings]:
    """The dumps as they are paired: what one side has fused is one on the other side as well; and by which mappings.

    ``earlier``: the steps before, where they were looked for already. ``tell``: of weights that look exchanged, where
    the modules are aligned here.
    """
    mappings = options.mappings
    earlier = EarlierSteps.of(target, golden) if earlier is None else earlier
    if options.forward_only:
        target, golden = _forward_of(target), _forward_of(golden)
    if options.align:
        from msprobe_ms.comparison.pairing.automatic import (  # here, as few comparisons need it
            align_modules,
            warn_swapped_weights,
        )

        alignment = align_modules(*earlier.of_same_modules(target, golden))
        if tell:
            warn_swapped_weights(alignment)
        mappings = replace(mappings, automatic=alignment.rules)
    return *join_fused(target, golden, mappings), mappings


def _forward_of(dump: Dump) -> Dump:
    entries = {name: entry for name, entry in dump.entries.items() if not is_of_training(entry.parsed)}
    return replace(dump, entries=entries)


@contextmanager
def _progress(pairs: int, *, shown: bool) -> Iterator[Progress | None]:
    """A bar in a terminal, where there are pairs enough to wait for; it is told how many are done."""
    if not shown or pairs < _LONG or not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm  # here, as it takes a tenth of the time that a small comparison takes

    with tqdm(total=pairs, unit="entry") as bar:
        yield lambda done: bar.update(done - bar.n)


@no_garbage_collection()
def compare_one(
    target: Path,
    golden: Path,
    output: Path,
    options: Options,
    timestamp: str,
    suffix: str = "",
    *,
    one_of_many: bool = False,
    after: int | None = None,
    forks: bool = False,
) -> Outcome:
    """Compare two dumps and write their reports, whose names end with ``suffix``.

    ``one_of_many`` and ``after`` as in ``compare_dumps``; ``forks``: this process may be forked, as no thread of
    somebody else runs in it. Raises MsprobeError: what cannot be read, paired or written.
    """
    ours = read_dump(target)
    theirs = read_dump(golden, like=ours)
    refuse_empty(ours, theirs)
    earlier, aligned = EarlierSteps.of(ours, theirs), []
    if options.align:
        from msprobe_ms.comparison.pairing.automatic import warn_swapped_weights, write_alignment

        both = earlier.of_same_modules(ours, theirs)
        alignment, file = write_alignment(*both, output, f"{suffix}_{timestamp}")
        if not one_of_many:
            warn_swapped_weights(alignment)
        options = replace(options, align=False, mappings=replace(options.mappings, automatic=alignment.rules))
        aligned = [file]
    comparison = compare_dumps(ours, theirs, options, one_of_many=one_of_many, after=after, earlier=earlier)
    del earlier  # which holds dumps
    proposed = _proposed_mapping(ours, theirs, comparison.pairs, options.mappings.layer)
    comparison.mapped = replace(comparison.mapped, found=bool(aligned), proposed=proposed)
    outcome = Outcome(suffix.removeprefix("_"), ours, theirs, comparison, aligned)
    dumps = {"target": target, "golden": golden}
    return write_reports(
        outcome, options, output, timestamp, suffix, dumps=dumps, one_of_many=one_of_many, forks=forks
    )  # fmt: skip


def _proposed_mapping(
    target: Dump, golden: Dump, pairs: Sequence[Pair], given: Mapping[str, Mapping[str, str]]
) -> list[str]:
    """Lines of a layer mapping that may pair modules which have no counterpart on either side, but those ``given``."""
    unmatched = unmatched_modules(pairs)
    if not all(unmatched) or len(target.entries) + len(golden.entries) > _MOST_ENTRIES:
        return []
    from msprobe_ms.comparison.pairing.automatic import align_modules  # here, as few comparisons need it

    ours, theirs = (
        {(parsed.name, parsed.class_name) for name in side if (parsed := parse_entry(name))} for side in unmatched
    )
    return align_modules(target, golden).lines_for(ours, theirs, given)


def verdict_of(comparison: Comparison) -> Verdict:
    """Judge a comparison: ``divergent``, ``incomplete`` or ``consistent``.

    Divergent where there is an origin of error, nothing has a counterpart, what calls take in is
    far apart though nothing random explains it, or values differ after a step that diverges. Modules of both sides
    that no name pairs are no difference: nothing is known of them yet. Consistent only when nothing differs by more
    than rounding error explains, most was compared, all that both recorded could be, both dumps are whole and end
    where the other does, and no random operation makes the rest differ.
    """
    pairs = comparison.pairs
    if comparison.origins:
        return Verdict.DIVERGENT
    if comparison.damage or sides_without_values(pairs):
        return Verdict.INCOMPLETE
    if not anything_compared(pairs):
        unknown = all(unmatched_modules(pairs)) and not any(row.differs for row in comparison.rows)
        return Verdict.INCOMPLETE if unknown else Verdict.DIVERGENT
    if comparison.far_apart:
        return Verdict.DIVERGENT
    if comparison.random or comparison.ends or comparison.unread or is_incomplete(pairs):
        return Verdict.INCOMPLETE
    return Verdict.CONSISTENT if comparison.inherits is None else Verdict.DIVERGENT
