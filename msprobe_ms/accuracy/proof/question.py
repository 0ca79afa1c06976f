"""Which call is to be proved: named by a report of compare, by two dumps and a name, or by one dump and a name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from msprobe_ms.comparison.model import Pair
from msprobe_ms.comparison.node.lookup import choose
from msprobe_ms.comparison.run import Options, as_paired, compare_dumps
from msprobe_ms.dump.model import Dump
from msprobe_ms.dump.names import beginnings, is_fused
from msprobe_ms.dump.reading.locate import find_dumps
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.support.errors import DumpFormatError, UsageError
from msprobe_ms.support.json_files import read_object
from msprobe_ms.support.translation import tr, tr_list

#: Bytes read of a summary.
_LARGEST = 64 << 20
#: What names of reports of compare begin with that name the dumps.
SUMMARY = "compare_summary"
#: What stands for a pair of dumps in the names of its reports.
_REPORTS = re.compile(r"[\w.+=,()-]+")
_ACCEPTED = tr("accepted are a compare_summary_….json, the folder of a report, and a dump")


@dataclass
class Question:
    """A call to prove. ``entry`` and ``counterpart`` are entries of target and golden, in any direction.

    ``options``  how entries of the two pair, where the report does not tell
    ``report``   the summary of compare that was asked about
    """

    target: Path
    golden: Path | None
    entry: str
    counterpart: str | None = None
    options: Options = field(default_factory=lambda: Options(align=True))
    report: Path | None = None

    @cached_property
    def counterparts(self) -> Mapping[str, str]:
        """Entries of the target → those of the golden that compare pairs with them."""
        if self.golden is None:
            return {}
        pairs = _pairs(self.target, self.golden, self.options)
        return {pair.target.name: pair.golden.name for pair in pairs if pair.target and pair.golden}


def question_of(path: Path, node: str | None, options: Options) -> Question:
    """Read what a summary of compare, a folder that holds some, or a dump asks about.

    :raises MsprobeError: there is no such file, it names no call, or not the dumps
    """
    summary = _summary_in(path)
    if summary is None:
        if node is None:
            raise UsageError(tr("{path}: of a dump alone, name the call with --node", path=path))
        return question_of_dump(path, node)
    content = read_object(summary, _LARGEST, _ACCEPTED)
    if isinstance(content.get("ranks"), list):
        summary = _first_of_many(summary, content)
        content = read_object(summary, _LARGEST, _ACCEPTED)
    return replace(_reported(summary, content, node, options), report=summary)


def question_of_dump(path: Path, node: str) -> Question:
    """Ask about one call of one dump.

    :raises MsprobeError: the dump cannot be read, or holds no such call
    """
    file = _one(path)
    entries = read_dump(file, sketches=False).entries
    entry = _begins(node, entries)
    if entry is None:
        chosen = choose(node, [Pair(each, None, []) for each in entries.values()])
        assert chosen.named.target is not None
        entry = chosen.named.target.name
    return Question(file, None, entry)


def question_of_dumps(target: Path, golden: Path, node: str, options: Options) -> Question:
    """Ask about one call of two dumps; entries pair as ``options`` say.

    :raises MsprobeError: a dump cannot be read, or neither holds such a call
    """
    ours, theirs = _one(target), _one(golden)
    chosen = choose(node, _pairs(ours, theirs, options))
    if chosen.named.target is None:
        raise UsageError(tr("--node {node}: nothing of the target is its counterpart", node=node))
    entry = chosen.named.target.name
    if is_fused(entry):
        raise UsageError(
            tr(
                "--node {node}: {entry} stands for several modules that were compared as one; name one of the golden",
                node=node,
                entry=entry,
            )
        )
    return Question(ours, theirs, entry, chosen.named.golden.name if chosen.named.golden else None, options)


def _pairs(target: Path, golden: Path, options: Options) -> list[Pair]:
    ours: Dump = read_dump(target)
    theirs: Dump = read_dump(golden)
    ours, theirs, mappings = as_paired(ours, theirs, options)
    return compare_dumps(ours, theirs, Options(mappings=mappings, fuzzy=options.fuzzy), one_of_many=True).pairs


def _one(path: Path) -> Path:
    found = find_dumps(path)
    if len(found) > 1:
        raise UsageError(
            tr(
                "{path}: one rank at a time, here are {found}; name the folder of one",
                path=path,
                found=tr_list(found),
            )
        )
    return next(iter(found.values()))


def _begins(name: str, entries: Mapping[str, Any]) -> str | None:
    """The entry that a name is, or that the item it names belongs to."""
    return next((each for each in (name, *beginnings(name)) if each in entries), None)


# -- reports -------------------------------------------------------------------------------------------------------


def _summary_in(path: Path) -> Path | None:
    """The summary that ``path`` is, or the latest that it holds; None where it is a dump."""
    if path.is_file():
        return path if path.name.startswith(SUMMARY) else None
    if not path.is_dir():
        try:
            find_dumps(path)  # the halves of a divided step lie elsewhere
        except DumpFormatError:
            raise UsageError(tr("{path}: no such file or folder; {accepted}", path=path, accepted=_ACCEPTED)) from None
        return None
    # Of many ranks and steps, that over all has the shortest name.
    found = sorted(path.glob(f"{SUMMARY}_*.json"), key=lambda file: (file.stem.rpartition("_")[2], -len(file.name)))
    return found[-1] if found else None


def _first_of_many(total: Path, content: Mapping[str, Any]) -> Path:
    """The summary of the pair that a report of many ranks and steps says to look at first."""
    first = content.get("first_rank")
    ranks = first.get("ranks") if isinstance(first, dict) else None
    wanted = ranks if isinstance(ranks, list) else []
    pairs = [each for each in _list(content, "ranks") if each.get("verdict") == "divergent"]
    pairs = [each for each in pairs if each.get("step") == content.get("first_step")] or pairs
    chosen = next((each for each in pairs if each.get("rank") in wanted), next(iter(pairs), {})).get("reports")
    if not isinstance(chosen, str) or not _REPORTS.fullmatch(chosen):
        raise UsageError(
            tr("{total}: no pair of dumps in it diverges; give the summary of one, and --node", total=total)
        )
    return total.with_name(f"{SUMMARY}_{chosen}_{total.stem.rpartition('_')[2]}.json")


def _no_origin(path: Path, verdict: object) -> str:
    """Say why a report has no call to prove anything of."""
    if verdict == "consistent":
        return tr(
            "{path}: the report is CONSISTENT, there is nothing to prove; to prove a call all the same, choose it with "
            "--node",
            path=path,
        )
    return tr("{path}: names no origin of an error; choose a call with --node", path=path)


def _reported(path: Path, content: Mapping[str, Any], node: str | None, options: Options) -> Question:
    origins = [each for each in _list(content, "origins") if isinstance(each.get("target"), str)]
    dumps = content.get("dumps")
    if not isinstance(dumps, dict) or not all(isinstance(dumps.get(side), str) for side in ("target", "golden")):
        raise UsageError(tr("{path}: does not name the dumps: an older report; give -tp and -gp", path=path))
    target, golden = (_one(Path(dumps[side])) for side in ("target", "golden"))
    if node is None:
        if not origins:
            raise UsageError(_no_origin(path, content.get("verdict")))
        chosen = origins[0]
    else:
        chosen = next((each for each in origins if each["target"].startswith(node)), {})
        if not chosen:
            return question_of_dumps(target, golden, node, options)
    entries = read_dump(target, sketches=False).entries
    entry = _begins(chosen["target"], entries)
    if entry is None:
        return question_of_dumps(target, golden, chosen["target"], options)
    theirs = chosen.get("golden")
    counterpart = _begins(theirs, read_dump(golden, sketches=False).entries) if isinstance(theirs, str) else None
    return Question(target, golden, entry, counterpart, options)


def _list(content: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    found = content.get(key)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
