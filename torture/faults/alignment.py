"""How well modules were paired: precision and F1 of module pairs against the truth of a variant."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from msprobe_ms.comparison.model import Pair
from msprobe_ms.dump.model import Dump
from msprobe_ms.dump.names import FORWARD
from torture.faults.jobs import Job

#: Variants of every net, and those that some nets have the parts for.
VARIANTS = ("renamed", "nameless", "wrapped", "reordered", "everything")
_MORE = {
    "mlp": ("shifted",),
    "dropout_mlp": ("shifted",),
    "resnet": ("shifted",),
    "unet": ("flattened",),
    "lstm": ("flattened",),
    "gru": ("flattened",),
    **dict.fromkeys(("encoder", "gpt", "llama", "moe", "vit", "compiled_encoder"), ("flattened", "fused", "shifted")),
}

#: Path in the target → paths in the golden, each of which is right.
Truth = Mapping[str, list[str]]


@dataclass(frozen=True)
class Alignment:
    """Counts of module pairs: ``right`` and ``wrong`` ones found, ``missed`` modules of the target that have a twin."""

    right: int
    wrong: int
    missed: int

    def __add__(self, other: Alignment) -> Alignment:
        return Alignment(self.right + other.right, self.wrong + other.wrong, self.missed + other.missed)

    @property
    def precision(self) -> float:
        return self.right / (self.right + self.wrong) if self.right + self.wrong else 1.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        total = 2 * self.right + self.wrong + self.missed
        return 2 * self.right / total if total else 1.0


def variants_of(net: str) -> tuple[str, ...]:
    return (*VARIANTS, *_MORE.get(net, ()))


def truth_file(root: Path, job: Job) -> Path:
    """Where the truth of a variant lies."""
    return root / "truth" / f"{job.net}-{job.change}.json"


def load_truth(root: Path, job: Job) -> Truth:
    return json.loads(truth_file(root, job).read_text(encoding="utf-8"))


def score_alignment(found: Mapping[str, str | Iterable[str]], truth: Truth, target: Dump, golden: Dump) -> Alignment:
    """Judge ``found``, path in the target → path (or paths) in the golden; modules without an entry count nothing."""
    ours, theirs = called(target), called(golden)
    expected = {path: set(twins) & theirs for path, twins in truth.items() if path in ours}
    pairs = {
        (path, twin)
        for path, twins in found.items()
        for twin in ((twins,) if isinstance(twins, str) else twins)
        if path in ours and twin in theirs
    }
    right = {(path, twin) for path, twin in pairs if twin in expected.get(path, ())}
    missed = {path for path, twins in expected.items() if twins} - {path for path, _ in right}
    return Alignment(len(right), len(pairs - right), len(missed))


def called(dump: Dump) -> set[str]:
    """Paths of the modules that ran."""
    parsed = (entry.parsed for entry in dump.entries.values())
    return {each.name for each in parsed if each is not None and each.is_module and each.direction == FORWARD}


def module_pairs(pairs: Iterable[Pair]) -> dict[str, set[str]]:
    """Path in the target → paths in the golden, as the pairs of a comparison have them."""
    found: dict[str, set[str]] = {}
    for ours, theirs in _forward(pairs):
        found.setdefault(ours, set()).add(theirs)
    return found


def _forward(pairs: Iterable[Pair]) -> Iterator[tuple[str, str]]:
    for pair in pairs:
        ours = pair.target.parsed if pair.target is not None else None
        theirs = pair.golden.parsed if pair.golden is not None else None
        if ours is not None and theirs is not None and ours.is_module and ours.direction == FORWARD:
            yield ours.name, theirs.name
