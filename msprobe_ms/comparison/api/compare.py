"""Compare two dumps from Python (``msprobe_ms.compare``), or assert that they agree (``assert_consistent``)."""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import yaml

from msprobe_ms.comparison.api.compared import Compared, ComparedRanks
from msprobe_ms.comparison.api.result import ComparisonResult
from msprobe_ms.comparison.many.plan import plan
from msprobe_ms.comparison.model import Comparison, Origin, Row
from msprobe_ms.comparison.reporting.files import compared_count
from msprobe_ms.comparison.reporting.profiles import PROFILES
from msprobe_ms.comparison.settings import Settings
from msprobe_ms.comparison.terms import Verdict
from msprobe_ms.dump.model import Dump
from msprobe_ms.dump.reading.locate import find_places
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.support.errors import CompareError, MsprobeError, UsageError, told_briefly
from msprobe_ms.support.text import one_a_line, suggestion
from msprobe_ms.support.translation import tr, tr_list


@told_briefly
def compare(
    target: Any,
    golden: Any,
    *,
    layer_mapping: str | Path | Mapping[str, Mapping[str, str]] | Literal[True] | None = None,
    cell_mapping: str | Path | Mapping[str, str] | Literal[True] | None = None,
    api_mapping: str | Path | Sequence[Mapping[str, Any]] | Literal[True] | None = None,
    data_mapping: str | Path | Mapping[str, str] | None = None,
    fuzzy: bool = False,
    profile: str = "own",
    thresholds: str | Path | Mapping[str, Any] | None = None,
    algorithms: Iterable[str] = (),
    ranks: Collection[int] = (),
    steps: Collection[int] = (),
    executor: Executor | None = None,
) -> ComparisonResult:
    """Compare two dumps and find where the error begins. No framework is needed, no file is written.

    ``target``, ``golden``  the dump under suspicion and the one to trust: a path (a dump.json, a rank or step
                            folder, a dump root), or what ``msprobe_ms.record`` or ``load`` gave
    ``…_mapping``           a yaml file, or its content; True is the bare flag of the command: layers are found from
                            the dumps, Cells pair with Modules, functions by the built-in table
    ``fuzzy``               ignore call indices while pairing
    ``profile``             columns and rules of the table: ``own``, ``latest`` or ``v110``
    ``thresholds``          values to measure and judge by, where not the usual: a yaml file, or its content
    ``algorithms``          metrics of your own, each ``"FILE.py:FUNCTION"``
    ``ranks``, ``steps``    the ones to compare, all when empty
    ``executor``            runs the comparisons where there are several ranks or steps; processes by default

    Returns a ``ComparisonResult``: a ``Compared``, or for several ranks or steps a ``ComparedRanks`` of them; both have
    ``verdict``, ``origins``, ``frame``, ``to_html`` and ``pairs``, the comparison of each rank and step.

    Raises MsprobeError: what cannot be read or paired.
    """
    if profile not in PROFILES:
        raise UsageError(
            tr(
                "compare: profile {profile}{suggestion}; accepted are {profiles}",
                profile=repr(profile),
                suggestion=suggestion(profile, PROFILES),
                profiles=tr_list(PROFILES),
            )
        )
    with _Files() as files:
        options = Settings(
            layer_mapping=files.of("layer", layer_mapping),
            cell_mapping=files.of("cell", cell_mapping),
            api_mapping=files.of("api", api_mapping),
            data_mapping=files.of("data", data_mapping),
            fuzzy=fuzzy,
            profile=profile,
            thresholds=files.of("thresholds", thresholds),
            algorithms=algorithms,
        ).options()
    if files.made:
        given = tuple(files.shown(file) for file in options.mappings.files)
        options = replace(options, arguments=None, mappings=replace(options.mappings, files=given))
    if isinstance(target, Dump) or isinstance(golden, Dump):
        return Compared(_one_dump(target), _one_dump(golden), options)
    chosen = plan(_path(target), _path(golden), ranks=ranks, steps=steps, profile=profile)
    if len(chosen.pairs) > 1:
        return ComparedRanks(chosen, options, executor)
    (pair,) = chosen.pairs
    return Compared(read_dump(pair.target), read_dump(pair.golden), options)


def _path(side: Any) -> Path:
    if isinstance(side, (str, Path)):
        return Path(side)
    if isinstance(path := getattr(side, "path", None), Path):  # a recording
        return path
    raise UsageError(
        tr(
            "compare: {name} is not accepted; accepted are a path, or what record or load of msprobe_ms gave",
            name=type(side).__name__,
        )
    )


def _one_dump(side: Any) -> Dump:
    if isinstance(side, Dump):
        return side
    places = find_places(_path(side))
    if len(places) > 1:
        raise CompareError(
            tr(
                "{path}: {count} dumps, to compare with one: name one of its folders",
                path=_path(side),
                count=len(places),
            )
        )
    return read_dump(next(iter(places.values())))


class _Files:
    """Content given as dicts and lists, as the yaml files it would stand in: with the same checks and meaning.

    ``made``  whether there was any
    """

    made = False

    def __enter__(self) -> _Files:
        self._folder = tempfile.TemporaryDirectory(prefix="msprobe_given_")
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._folder.cleanup()
        if isinstance(error, MsprobeError):
            # Nobody knows the file.
            text = re.sub(rf"{re.escape(self._folder.name)}\S+?\.yaml", "given as a value", str(error))
            raise type(error)(text) from None

    def shown(self, file: str) -> str:
        """How a file is called where people read of it: nobody knows those made here."""
        return tr("the mapping given as a value") if Path(file).parent == Path(self._folder.name) else file

    def of(self, kind: str, given: Any) -> Any:
        """A path; None and True as they are."""
        if given is None or given is True:
            return given
        if not isinstance(given, (Mapping, Sequence)) or isinstance(given, str):
            return Path(given)
        self.made = True
        path = Path(self._folder.name) / f"{kind}.yaml"
        path.write_text(yaml.safe_dump(_plain(given), allow_unicode=True, sort_keys=False), encoding="utf-8")
        return path


def _plain(given: Any) -> Any:
    """Dicts and lists, whatever kind of mapping and sequence they were."""
    if isinstance(given, Mapping):
        return {key: _plain(value) for key, value in given.items()}
    return [_plain(each) for each in given] if isinstance(given, (list, tuple)) else given


@told_briefly
def assert_consistent(target: Any, golden: Any, *, allow_incomplete: bool = False, **settings: Any) -> None:
    """Assert that two dumps are consistent, compared as ``msprobe_ms.compare`` does with the same ``settings``.

    For tests: the message reads as that of ``torch.testing.assert_close``.
    Raises AssertionError where they diverge, and, unless ``allow_incomplete``, where most has no counterpart to compare
    with or a rank could not be compared. Raises MsprobeError: what cannot be read or paired.
    """
    __tracebackhide__ = True
    result = compare(target, golden, **settings)
    accepted = (Verdict.CONSISTENT, Verdict.INCOMPLETE) if allow_incomplete else (Verdict.CONSISTENT,)
    if result.verdict not in accepted:
        told = _of_ranks(result) if isinstance(result, ComparedRanks) else _of_one(*result.pairs.values())
        raise AssertionError(one_a_line(told))


def _of_one(result: Compared) -> Iterator[str]:
    if not result.origins:
        yield (
            tr("Dumps are not consistent: too little of them could be compared!")
            if result.verdict == Verdict.INCOMPLETE
            else tr("Dumps are not consistent!")
        )
        yield ""
        yield from str(result).split("\n")
        return
    yield tr("Dumps are not consistent!")
    yield ""
    yield from _mismatches(result.comparison)
    yield ""
    yield from _beginning(result.origins[0])
    if len(result.origins) > 1:
        yield tr("Perhaps also at {names}.", names=tr_list(origin.target for origin in result.origins[1:4]))


def _of_ranks(result: ComparedRanks) -> Iterator[str]:
    wrong = sum(found.verdict != Verdict.CONSISTENT for found in result.found)
    yield tr("Dumps are not consistent, in {wrong} of {count} pairs!", wrong=wrong, count=len(result.found))
    yield ""
    if result.first is not None:
        first = result[result.first]
        yield from _mismatches(first.comparison)
        yield ""
        if first.origins:
            yield from _beginning(first.origins[0])
            yield ""
    yield from str(result).split("\n")


def _beginning(origin: Origin) -> Iterator[str]:
    yield tr("The error begins at {target} (golden: {golden}):", target=origin.target, golden=origin.golden)
    yield origin.reason


def _mismatches(comparison: Comparison) -> Iterator[str]:
    total, differing = compared_count(comparison), 0
    greatest: Row | None = None
    for row in comparison.rows:
        if row.differs:
            differing += 1
            if greatest is None or (row.deviation or 0.0) > (greatest.deviation or 0.0):
                greatest = row
    share = f" ({100 * differing / total:.1f}%)" if total else ""
    yield tr("Mismatched rows: {differing} / {total}{share}", differing=differing, total=total, share=share)
    if greatest is not None and greatest.target is not None:
        deviation = greatest.deviation or 0.0
        shown = f"{deviation:.6g}" if math.isfinite(deviation) else tr("beyond measure")
        yield tr(
            "Greatest relative deviation: {shown} at {name} (up to {held_to:.3g} allowed)",
            shown=shown,
            name=greatest.target.name,
            held_to=greatest.held_to,
        )
