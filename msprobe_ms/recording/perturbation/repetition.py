"""One call and its repetition: what it was given, the same with a perturbation, and how its results compare."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from typing import Any, NamedTuple

from msprobe_ms.arrays.dtypes import EPSILON
from msprobe_ms.frameworks.base import Framework
from msprobe_ms.frameworks.repeating import LARGEST, NARROW, Repeater, Restore, host_generators_kept
from msprobe_ms.recording.perturbation.api_kinds import ApiKind
from msprobe_ms.recording.perturbation.arguments import Leaves, NotRepeatableError, in_order, leaves
from msprobe_ms.recording.perturbation.judging import (
    INFINITY,
    NAN,
    SHAPE,
    Bounds,
    Finding,
    angle_limit,
    judge,
)
from msprobe_ms.recording.perturbation.perturbations import Perturbation
from msprobe_ms.support.translation import tr

Function = Callable[..., Any]


class Result(NamedTuple):
    """A result that was compared: its place, None of a single one, the tensor, and what is inconsistent about it."""

    place: int | None
    tensor: Any
    #: The largest change beside the largest element, as far as there is a number for it.
    size: float
    finding: Finding | None


class Tools(NamedTuple):
    """What all repetitions have in common."""

    framework: Framework
    repeater: Repeater
    perturbation: Perturbation
    #: Whether noise goes into all tensors.
    everywhere: bool


class Repetition:
    """A call that is to be made again. Made before the call is; nothing here raises what the call itself does not."""

    def __init__(
        self,
        tools: Tools,
        kind: ApiKind,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        *,
        writes: bool,
        scratch: frozenset[int] = frozenset(),
    ) -> None:
        """``writes``: the call changes its arguments, which are copied. ``scratch``: places of results without meaning.

        Raises `NotRepeatableError`.
        """
        self._tools, self.kind, self.writes, self._scratch = tools, kind, writes, scratch
        self.args, self.kwargs = list(args), dict(kwargs)
        found = in_order(args, kwargs)
        self._values = found
        framework, repeater = tools.framework, tools.repeater
        self.tensors = [each for each in found if framework.is_tensor(each)]
        if not all(repeater.is_plain(each) and framework.is_readable(each) for each in self.tensors):
            raise NotRepeatableError(tr("an argument is a tensor of another kind"))
        self.floats = [each for each in self.tensors if repeater.float_name(each)]
        if not self.floats:
            raise NotRepeatableError(tr("no argument holds floating-point numbers"))
        if tools.perturbation.everywhere and not self._is_changed():
            raise NotRepeatableError(tr("no argument is of a narrow dtype"))
        if writes:
            copies = {id(each): repeater.copy(each) for each in self.tensors}
            self.args, self.kwargs = self.exchanged(copies)
            self.tensors = list(copies.values())
            self.floats = [each for each in self.tensors if repeater.float_name(each)]
        self._versions = [(each, repeater.version(each)) for each in self.tensors]
        self._take_state = repeater.generators(found)
        self._before = self._take_state()
        self._casting = repeater.casting()

    def _is_changed(self) -> bool:
        """Whether a perturbation of all tensors changes any, or how the call computes."""
        tools = self._tools
        if not tools.perturbation.is_precision:
            return True
        return any(tools.repeater.float_name(each) in NARROW for each in self.floats) or tools.repeater.casts()

    @property
    def was_written(self) -> bool:
        """Whether an argument was written to since this was made."""
        version = self._tools.repeater.version
        return any(version(tensor) != before for tensor, before in self._versions)

    def detach(self) -> dict[int, Any]:
        """Hold tensors of the same memory outside of every gradient graph; these, by the ids of the call's own."""
        stand_ins = self._put({id(each): self._tools.repeater.detached(each) for each in self.tensors})
        self._values = []
        return stand_ins

    def keep(self) -> dict[int, Any]:
        """Hold copies; these, by the ids of those held before."""
        return self._put({id(each): self._tools.repeater.kept(each) for each in self.tensors})

    def _put(self, stand_ins: dict[int, Any]) -> dict[int, Any]:
        self.args, self.kwargs = self.exchanged(stand_ins)
        version = self._tools.repeater.version
        self._versions = [(stand_ins[id(tensor)], version(stand_ins[id(tensor)])) for tensor, _ in self._versions]
        self.tensors = list(stand_ins.values())
        self.floats = [each for each in self.tensors if self._tools.repeater.float_name(each)]
        return stand_ins

    def release(self) -> None:
        """Let go of the arguments."""
        self.args, self.kwargs = [], {}
        self.tensors, self.floats, self._versions = [], [], []

    def using(self, tools: Tools) -> Repetition:
        """Return the same repetition with another perturbation."""
        other = copy(self)
        other._tools = tools
        return other

    def result(self, output: Any) -> Any:
        """Return what stands for the result of a call: what it wrote to, where it returned nothing."""
        if output is None and self.writes and self._values:
            return self._values[0]
        return output

    def exchanged(self, others: Mapping[int, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments with other tensors, by the ids of those that they stand for."""
        walk = Leaves(lambda leaf: others.get(id(leaf), leaf))
        return walk.of(list(self.args)), walk.of(dict(self.kwargs))

    def perturbed(self, seed: int) -> tuple[dict[int, Any], list[str]]:
        """Return the tensors to call with, by the ids of the call's own; and the dtypes of those that were changed."""
        repeater, perturbation = self._tools.repeater, self._tools.perturbation
        others: dict[int, Any] = {}
        made: dict[object, Any] = {}
        dtypes: list[str] = []
        for tensor in self.tensors:
            name = repeater.float_name(tensor)
            place = repeater.memory(tensor)
            wanted = perturbation.everywhere or (place not in made and (self._tools.everywhere or not dtypes))
            if wanted and (name or perturbation.all_tensors):
                changed = perturbation.change(repeater, tensor, seed)
                if changed is not None:
                    made[place] = changed
                    dtypes.append(name or "")
            others[id(tensor)] = made[place] if place in made else repeater.alias(tensor)
        if not dtypes and not repeater.casts():
            raise NotRepeatableError(tr("no argument can be changed in this way"))
        return others, [each for each in dtypes if each]

    @contextmanager
    def as_before(self) -> Iterator[None]:
        """A context in which random numbers are those of the call; afterwards they go on where they were."""
        after: Restore = self._take_state()
        with host_generators_kept():
            try:
                self._before()
                yield
            finally:
                after()

    def run(self, function: Function, others: Mapping[int, Any]) -> tuple[Any, list[Any]]:
        """Make the call with other tensors; its result, or what it wrote to, and its arguments."""
        args, kwargs = self.exchanged(others)
        with ExitStack() as around:
            around.enter_context(self.as_before())
            narrow = self._tools.perturbation.is_precision
            around.enter_context(self._tools.repeater.at_full_precision() if narrow else self._casting())
            output = function(*args, **kwargs)
        return (args[0] if output is None and self.writes and args else output), [args, kwargs]

    # -- results ---------------------------------------------------------------------------------------------------

    def compare(
        self, function: Function, output: Any, seed: int, threshold: Callable[[str, float], float]
    ) -> Iterator[Result]:
        """Call again and compare; ``threshold`` gives the limit for a dtype. Raises what the call raises."""
        tools = self._tools
        others, dtypes = self.perturbed(seed)
        again, arguments = self.run(function, others)
        if tools.perturbation.by_order:
            self._demand_one_element(output)
        pairs = self._pairs(output, again)
        terms: list[float] | None = None
        third: list[Any] | None = None
        for number, (own, other) in enumerate(pairs):
            place = number if len(pairs) > 1 else None
            name = self._compared(own, other)
            if name is None or number in self._scratch:
                continue
            if tuple(own.shape) != tuple(other.shape):
                yield Result(place, own, math.inf, Finding(SHAPE, math.inf, None, 0, 0))
                continue
            bounds = self.bounds([name, *dtypes], dtypes)
            bounds = bounds._replace(limit=threshold(name, bounds.limit))
            change = tools.repeater.measure(own, other, bounds.limit, bounds.noise or 0.0)
            finding = judge(change, bounds)
            if finding is not None and self.kind.sums and bounds.limit and math.isfinite(finding.size):
                terms = self._terms(function, arguments) if terms is None else terms
                scale = terms[number] if number < len(terms) else 0.0
                finding = judge(change, bounds._replace(scale=scale))
            if finding is not None and not bounds.limit and finding.size <= rounding_limit(name):
                third = self._third(function, seed) if third is None else third
                finding = None if self._is_same(other, third[number]) else finding
            if finding is None and bounds.limit and (change.has_nan or change.has_infinity):
                finding = self._made_of_numbers(change.has_nan, change.elements)
            yield Result(place, own, change.relative, finding)

    def _third(self, function: Function, seed: int) -> list[Any]:
        """The results of another repetition. How some kernels add up depends on where in memory an argument begins:
        what differs from the call by rounding alone is only told where repetitions differ as well."""
        return leaves(self.run(function, self.perturbed(seed)[0])[0])

    def _is_same(self, other: Any, third: Any) -> bool:
        change = self._tools.repeater.measure(other, third, 0.0)
        return not (change.largest or change.nans or change.infinities)

    def _demand_one_element(self, output: Any) -> None:
        """Raise `NotRepeatableError` unless a result is one number, which does not depend on the order of others."""
        tensors = [each for each in leaves(output) if self._tools.framework.is_tensor(each)]
        if any(size != 1 for each in tensors for size in each.shape):
            raise NotRepeatableError(tr("its results depend on the order of elements"))

    def _pairs(self, output: Any, again: Any) -> Sequence[tuple[Any, Any]]:
        own, others = leaves(output), leaves(again)
        if len(own) != len(others):
            raise NotRepeatableError(tr("it returned another number of results"))
        pairs = list(zip(own, others, strict=True))
        if all(self._compared(*pair) is None for pair in pairs):
            raise NotRepeatableError(tr("no result holds floating-point numbers"))
        return pairs

    def _compared(self, own: Any, other: Any) -> str | None:
        """The dtype of two results that can be compared; None of others."""
        framework, repeater = self._tools.framework, self._tools.repeater
        if not (framework.is_tensor(own) and framework.is_tensor(other)):
            return None
        return repeater.float_name(own) if repeater.is_plain(own) and repeater.float_name(other) else None

    def bounds(self, dtypes: Sequence[str], changed: Sequence[str]) -> Bounds:
        """What results may change by: as much as the narrowest of these dtypes allows."""
        perturbation, kind = self._tools.perturbation, self.kind
        limit = max((perturbation.limits.get(name, 0.0) for name in dtypes), default=0.0)
        if kind.angles:
            limit = angle_limit(limit)
        noise = max((perturbation.size[name] for name in changed if name in perturbation.size), default=None)
        judged_by_share = perturbation.is_noise and not (kind.sums or kind.losses or kind.angles)
        return Bounds(limit, 1.0 if kind.losses else 0.0, noise, judged_by_share)

    def _terms(self, function: Function, arguments: Sequence[Any]) -> list[float]:
        """The largest magnitude of each result, had all arguments been their magnitudes."""
        framework, repeater = self._tools.framework, self._tools.repeater

        def positive(leaf: Any) -> Any:
            is_float = framework.is_tensor(leaf) and repeater.float_name(leaf)
            return repeater.magnitudes(leaf) if is_float else leaf

        args, kwargs = Leaves(positive).of(list(arguments))
        with self.as_before():
            found = leaves(function(*args, **kwargs))
        return [largest(self._tools, each) for each in found]

    def _made_of_numbers(self, has_nan: bool, elements: int) -> Finding | None:
        """NaN or infinity in a result of arguments that hold none."""
        plain = [value for value in self._values if type(value) is float]
        held = [self._tools.repeater.measure(each, each, 0.0) for each in self.floats]
        if has_nan:
            if any(each.has_nan for each in held) or any(map(math.isnan, plain)):
                return None
            return Finding(NAN, math.inf, None, 0, elements)
        names = [self._tools.repeater.float_name(each) or "" for each in self.floats]
        near = any(each.scale > LARGEST[name] / 2 for each, name in zip(held, names, strict=True))
        if near or any(each.has_nan or each.has_infinity for each in held) or not all(map(math.isfinite, plain)):
            return None
        return Finding(INFINITY, math.inf, None, 0, elements)


def largest(tools: Tools, tensor: Any) -> float:
    """The largest finite magnitude of a tensor; 0 of what holds no floating-point numbers."""
    if not tools.framework.is_tensor(tensor) or not tools.repeater.float_name(tensor):
        return 0.0
    return tools.repeater.measure(tensor, tensor, 0.0).scale


def rounding_limit(name: str) -> float:
    """What gradients of one dtype may differ by that were added up in another order."""
    return 8 * EPSILON[name]
