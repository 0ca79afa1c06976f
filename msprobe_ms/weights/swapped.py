"""Parameters that differ from their counterparts because they hold what another should: loaded crosswise, or twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from msprobe_ms.arrays.dtypes import coarser
from msprobe_ms.arrays.metrics import tensor_difference
from msprobe_ms.support.errors import DumpFormatError
from msprobe_ms.support.translation import tr, tr_join
from msprobe_ms.weights.model import Weight

#: Elements that are looked at before two tensors are read again, and how far apart they may be (relative to the
#: largest): a rounding of bfloat16. And how many tensors are read again for one.
_SAMPLES, _NEAR, _MOST = 16, 2.0**-7, 4

Sample = npt.NDArray[np.complex128]


@dataclass(slots=True)
class Holders:
    """What parameters hold, in a few elements of each; ``pairs`` by the name in the target.

    ``samples``  of the target's and of its counterpart in the golden
    """

    pairs: dict[str, tuple[Weight, Weight]] = field(default_factory=dict)
    samples: dict[str, tuple[Sample, Sample]] = field(default_factory=dict)

    def note(self, target: Weight, golden: Weight, mine: np.ndarray, theirs: np.ndarray) -> None:
        """Two counterparts of one shape, and their numbers."""
        if mine.size:
            self.pairs[target.name] = target, golden
            self.samples[target.name] = _sample(mine), _sample(theirs)

    def find(self, differing: list[str]) -> dict[str, str]:
        """Parameter of the target that differs → the one whose numbers, in the golden, it holds."""
        by_shape: dict[tuple[int, ...], list[str]] = {}
        for name, (_, golden) in self.pairs.items():
            by_shape.setdefault(golden.shape, []).append(name)
        held = {shape: _Held(np.stack([self.samples[one][1] for one in names])) for shape, names in by_shape.items()}
        found = {}
        for name in filter(self.pairs.__contains__, differing):
            sample, shape = self.samples[name][0], self.pairs[name][1].shape
            if (sample == sample[0]).all() or not np.isfinite(sample).all():
                continue  # of a constant nobody can tell whose it is
            others = [by_shape[shape][place] for place in held[shape].nearest(sample)]
            if other := next((one for one in others if one != name and self._holds(name, one)), None):
                found[name] = other
        return found

    def _holds(self, name: str, other: str) -> bool:
        target, golden = self.pairs[name][0], self.pairs[other][1]
        try:
            apart = tensor_difference(target.load(), golden.load()).relative_l2
        except (DumpFormatError, MemoryError):
            return False
        return apart <= coarser(target.dtype, golden.dtype).epsilon

    def words(self, name: str, found: dict[str, str]) -> str:
        other = found[name]
        if found.get(other) == name:
            return tr("exchanged with {other}", other=other)
        return tr("holds what the golden has as {name}", name=self.pairs[other][1].name)


class _Held:
    """Samples of many parameters of one shape, in the order of that element of them which tells most apart."""

    def __init__(self, samples: Sample) -> None:
        keys = samples.real
        column = max(range(keys.shape[1]), key=lambda column: len(np.unique(keys[:, column])))
        self._order = np.argsort(keys[:, column], kind="stable")
        self._keys, self._samples, self._column = keys[self._order, column], samples[self._order], column

    def nearest(self, sample: Sample) -> list[int]:
        """Places of the few that are near, the nearest first, of equals the first."""
        bound = _NEAR * float(np.abs(sample).max())
        key = float(sample[self._column].real)
        begin = int(np.searchsorted(self._keys, key - bound, "left"))
        end = int(np.searchsorted(self._keys, key + bound, "right"))
        with np.errstate(invalid="ignore"):
            apart = np.abs(self._samples[begin:end] - sample).max(axis=1)
        near = np.flatnonzero(apart <= bound)
        places = self._order[begin:end][near]
        return [int(places[each]) for each in np.lexsort((places, apart[near]))[:_MOST]]


def exchanges(found: dict[str, str]) -> list[tuple[str, ...]]:
    """Of what ``Holders.find`` found the closed circles, each once: parameters that were loaded crosswise."""
    circles, seen = [], set()
    for start in found:
        way: dict[str, None] = {}
        name = start
        while name in found and name not in seen:
            seen.add(name)
            way[name] = None
            name = found[name]
        if name in way:
            every = list(way)
            circles.append(tuple(every[every.index(name) :]))
    return circles


def not_finite(target: np.ndarray, golden: np.ndarray) -> str:
    """How many elements are NaN or infinite, where one side has them and the other not in the same places."""
    said = []
    kinds: tuple[tuple[str, Callable], ...] = (("NaN", np.isnan), (tr("infinity"), np.isinf))
    for what, is_such in kinds:
        counts = [int(np.count_nonzero(is_such(side))) if side.dtype.kind in "fc" else 0 for side in (target, golden)]
        if any(counts):
            said.append(
                tr(
                    "{what} in {target} elements of the target and {golden} of the golden, of {size}",
                    what=what,
                    target=counts[0],
                    golden=counts[1],
                    size=golden.size,
                )
            )
    return tr_join(tr("; "), said)


def _sample(array: np.ndarray) -> Sample:
    places = np.linspace(0, array.size - 1, _SAMPLES).astype(np.intp)
    return np.asarray(array.reshape(-1)[places] if array.flags.c_contiguous else array.flat[places], np.complex128)
