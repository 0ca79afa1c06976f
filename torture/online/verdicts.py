"""Whether the tables of a host say of each call what those of a dump say, or that it did not come."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from torture.online.calls import APIS, PREFIX, VARIANTS, write_dump

Row = tuple[str, ...]


def table(folder: Path, kind: str, ending: str = "") -> list[Row]:
    """The rows of a table, without titles."""
    (found,) = folder.glob(f"accuracy_checking_{kind}_*{ending}.csv")
    with found.open(encoding="utf-8-sig", newline="") as opened:
        return list(map(tuple, csv.reader(opened)))[1:]


def expected_rows(offline: Path, names: list[str]) -> list[tuple[Row, Row]]:
    """The rows of each variant without the name, of the result and of its only output."""
    results, details = ({row[0]: row[1:] for row in table(offline, kind)} for kind in ("result", "details"))
    return [(results[name], details[f"{name}.forward.output.0"]) for name in names]


class RankVerdict:
    """The rows of one rank beside what its trainings wrote down."""

    def __init__(self, tables: Path, rank: int, expected: list[tuple[Row, Row]]) -> None:
        ending = f"_rank{rank}"
        rows = [(re.sub(r"^training\d+\.", "", row[0]), row[1:]) for row in table(tables, "result", ending)]
        self._rows = dict(rows)
        self._details = {re.sub(r"^training\d+\.", "", row[0]): row[1:] for row in table(tables, "details", ending)}
        self._expected = expected
        self._dropped = [
            range(int(found[1]), int(found[2] or found[1]) + 1)
            for name in self._rows
            if (found := re.fullmatch(r"step(\d+)(?:-step(\d+))?", name))
        ]
        self.counts: Counter[str] = Counter()
        self.problems = [f"rank {rank}: {len(rows) - len(self._rows)} names are there twice"] * (
            len(rows) > len(self._rows) + sum(name.startswith(("call", "after")) for name, _ in rows)
        )
        self._said_no_end = any(name.startswith("after call") for name in self._rows)
        self._numbers = any(name.startswith("call") for name in self._rows)
        self._rank = rank
        self._known: set[str] = set()

    def look(self, log: Path) -> None:
        """Look at what one training wrote down."""
        lines = [json.loads(line) for line in log.read_text().splitlines() if line.endswith("]") or line == '"end"']
        ended = bool(lines) and lines[-1] == "end"
        steps = [line for line in lines if line != "end"]
        beginnings = tuple(f"step{step}." for step, _ in steps)
        if not ended and not any(name.startswith(beginnings) for name in self._rows):
            # Killed together with its sender, before that had said hello: no host can know of it.
            self.counts["trainings never heard of"] += 1
            return
        for place, (step, variants) in enumerate(steps):
            if variants is None:
                dropped = any(step in gap for gap in self._dropped)
                self._count("steps dropped", f"step{step}", dropped or (not ended and "in the end of a killed one"))
                continue
            last = not ended and place == len(steps) - 1
            for name, variant in _names(variants):
                self._call(f"step{step}.{name}", variant, step, last=last)

    def _call(self, name: str, variant: int, step: int, *, last: bool) -> None:
        self._known.add(name)
        result, details = self._expected[variant]
        row = self._rows.get(name)
        if row is None:
            excuse = last or self._said_no_end or self._numbers or any(step in gap for gap in self._dropped)
            self._count("not there, and said so", name, excuse)
        elif "not received" in row[-1]:
            self._count("not received", name, True)
        else:
            same = row == result and self._details.get(f"{name}.forward.output.0") == details
            self._count("as offline", name, same)

    def _count(self, what: str, name: str, fine: object) -> None:
        self.counts[what if fine else f"WRONG: {what}"] += 1
        if not fine and len(self.problems) < 5:
            self.problems.append(f"rank {self._rank}: {name}: {what}: {self._rows.get(name)}")

    def finish(self) -> None:
        """Look for rows that nobody recorded."""
        calls = {name for name in self._rows if re.match(r"step\d+\.", name)}
        if unknown := calls - self._known:
            self.problems.append(f"rank {self._rank}: nobody recorded {sorted(unknown)[:3]}")


def _names(variants: list[int]) -> Iterator[tuple[str, int]]:
    """The names that `write_dump` gives calls."""
    counts: Counter[str] = Counter()
    for variant in variants:
        api = APIS[variant % len(APIS)]
        yield f"{PREFIX.get(api, 'Torch')}.{api}.{counts[api]}", variant
        counts[api] += 1


def write_variants(folder: Path) -> list[str]:
    """Write a dump with each variant once; return their names in order."""
    return write_dump(folder, list(range(VARIANTS)))
