"""Pair parameters of two files by name: cleared of wrappers, by synonyms, mappings, a common prefix."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.comparison.pairing.rules.modules import NOWHERE, CellRules
from msprobe_ms.comparison.pairing.updates import PARAMETER_SYNONYMS
from msprobe_ms.support.log import logger
from msprobe_ms.support.text import listed
from msprobe_ms.support.translation import tr, tr_count

#: Components that wrappers put in front of or between names, and that no layer is called.
_WRAPPERS = frozenset(
    ("_orig_mod", "_backbone", "_network", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_forward_module")
)
#: The same, as far as they come first: a layer inside may bear such a name.
_LEADING = frozenset(("module", "network"))

#: What optimizers of MindSpore call their states: one of these, then the parameter's name.
_STATES = (
    "adam_m", "adam_v", "moments", "moment1", "moment2", "moment", "accum_update", "accum", "mean_square", "mean_grad",
    "max_exp_avg_sq", "exp_avg_sq_row", "exp_avg_sq_col", "exp_avg_sq", "exp_avg", "vhat", "square_avg", "acc_delta",
    "grad_avg", "momentum_buffer",
)  # fmt: skip
#: The same, where a layer may well bear the name.
_STATES_OR_LAYERS = ("stat", "linear", "prev", "step_size", "ax", "eta", "mu", "velocity")
#: Single numbers that training keeps beside the parameters.
_COUNTERS = frozenset(
    ("global_step", "learning_rate", "beta1_power", "beta2_power", "momentum", "weight_decay", "state_step", "lr",
     "afactor_step", "epoch", "epoch_num", "step_num", "batch_num", "current_iterator_step", "loss_scale",
     "last_overflow_iterator_step", "scale_sense")
)  # fmt: skip
#: Shapes of a single number.
_SINGLE = ((), (1,))
#: What a framework counts of a layer, without a counterpart in the other one.
_BOOKKEEPING = "num_batches_tracked"

#: Dtypes that no parameter has.
_NOT_TRAINED = frozenset(("bool", "int32", "int64"))
#: What the buffers of common layers are called whose dtype does not tell: masks, and the angles of rotary positions.
_BUFFERS = frozenset(
    ("mask", "attn_mask", "attention_mask", "causal_mask", "masked_bias", "inv_freq", "freqs_cis", "freqs_cos",
     "freqs_sin", "cos_cached", "sin_cached")
)  # fmt: skip

#: What to do where both sides have parameters without a counterpart.
NAMES_DIFFER = tr(
    "  names that differ between the sides pair with -lm FILE (`msprobe compare ... -lm` of two dumps "
    "writes the file) or with -dm FILE (full names, one pair a line)"
)

#: Readings of one name that are tried, and leading components that a common prefix may have.
_MOST_READINGS, _LONGEST_PREFIX = 64, 3


def no_parameters(shapes: Mapping[str, tuple[int, ...]], *, of_mindspore: bool) -> dict[str, str]:
    """Of the tensors of one file, by their shapes, those that are no parameters → ``optimizer states``, ``counters``.

    A word that a layer may be called counts as a state's only in MindSpore's own format, and where each of its tensors
    has the shape of the parameter it would belong to, or is a single number.
    """
    found = {name: "counters" for name, shape in shapes.items() if _counts(name, shape)}
    for state in (*_STATES, *(_STATES_OR_LAYERS if of_mindspore else ())):
        owners = {name: owner for name in shapes if (owner := _owner(name, state))}
        if state in _STATES_OR_LAYERS and not all(
            owner in shapes and shapes[name] in (shapes[owner], *_SINGLE) for name, owner in owners.items()
        ):
            continue
        found |= {name: tr("optimizer states") for name, owner in owners.items() if owner in shapes}
    return found


def is_buffer(name: str, dtype: str) -> bool:
    """Whether a tensor is a layer's constant: positions and masks cannot be trained, tables of angles are named so.

    Integers of eight bits may be quantised weights, and count only where they are called a mask.
    """
    return dtype in _NOT_TRAINED or name.rpartition(".")[2] in _BUFFERS


def _counts(name: str, shape: tuple[int, ...]) -> bool:
    return name.rpartition(".")[2] == _BOOKKEEPING or (name in _COUNTERS and shape in _SINGLE)


def _owner(name: str, state: str) -> str:
    """The parameter whose ``state`` has this name; they come with a dot, an underscore, or both between."""
    rest = name[len(state) :]
    return rest.lstrip("._") if rest[:1] in (".", "_") and name.startswith(state) else ""


def pair_names(
    target: Sequence[str], golden: Sequence[str], mappings: Mappings, *, warn: bool = True
) -> dict[str, tuple[str, str]]:
    """Pair names: target name → (golden name, what paired them); each golden name once.

    The surest first: the data mapping, equal names, names cleared of wrappers and with the rules of the mappings
    applied, last one prefix that the rest of one side has more than the other. Those that a layer mapping says are
    ``unmatched`` have the data mapping alone. ``warn``: of rules that come to nothing.
    """
    pairs: dict[str, tuple[str, str]] = {}
    free = dict.fromkeys(golden)

    def take(ours: str, theirs: str, how: str) -> None:
        if ours not in pairs and theirs in free:
            pairs[ours] = theirs, how
            del free[theirs]

    for name in target:
        if golden_name := mappings.data.get(name):
            take(name, golden_name, "data")
    readings = _Readings(mappings)
    if not readings.has_rules:
        for name in target:
            take(name, name, "name")
    canonical = _by_canonical(free)
    alone = set[str]()
    for name in target:
        if name not in pairs:
            for reading, how in readings.of(canonical_name(name)):
                if how == NOWHERE:
                    alone.add(name)
                elif reading in canonical and not (how == "name" and name in alone):
                    take(name, canonical[reading], how)
                    break
    if warn:
        readings.warn_of_unmet()
    _take_prefixed([name for name in target if name not in alone], free, pairs, take)
    return pairs


def said_unmatched(target: Sequence[str], mappings: Mappings) -> set[str]:
    """Return the target names that a layer mapping says have no counterpart."""
    readings = _Readings(mappings)
    return {name for name in target if any(how == NOWHERE for _, how in readings.of(canonical_name(name)))}


def is_top(parent: str) -> bool:
    """Whether a rule of a layer mapping speaks of the network's own children."""
    return parent == "TopLayer"


def without_wrappers(name: str) -> str:
    """Return the name of a module without those of wrappers around it; "" where nothing is left."""
    return ".".join(_unwrapped(f"{name}.", leading=True)[:-1])


def canonical_name(name: str) -> str:
    """
    >>> canonical_name("module._backbone.layers.0._orig_mod.norm.gamma")
    'layers.0.norm.weight'
    """
    *owner, last = _unwrapped(name, leading=True) or ("",)
    return ".".join([*owner, PARAMETER_SYNONYMS.get(last, last)])


def _unwrapped(name: str, *, leading: bool) -> tuple[str, ...]:
    """The components without those of wrappers; ``leading``: nor those that only come first."""
    parts = [part for part in name.split(".") if part not in _WRAPPERS]
    first = 0
    while leading and first < len(parts) - 1 and parts[first] in _LEADING:
        first += 1
    return tuple(parts[first:])


def _by_canonical(names: Iterable[str]) -> dict[str, str]:
    """Canonical name → name; two of one canonical name have none, for nothing tells which is meant."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(canonical_name(name), []).append(name)
    return {canonical: names[0] for canonical, names in found.items() if len(names) == 1}


class _LayerRule(NamedTuple):
    """``spoken``: what it is called in messages; ``top``: of children of the network alone."""

    spoken: str
    key: tuple[str, ...]
    golden: tuple[str, ...]
    top: bool


class _Readings:
    """What a parameter may be called on the other side under the mappings."""

    def __init__(self, mappings: Mappings) -> None:
        #: A file of weights knows no classes: a layer rule holds wherever its child is met.
        self._layer: dict[str, list[_LayerRule]] = {}
        for parent, children in mappings.layer.items():
            for child, value in children.items():
                top = is_top(parent)
                # The names it meets are without wrappers, at the top without leading ones.
                key, golden = (_unwrapped(name, leading=top) for name in (child, value))
                if key and not (top and key[0] in _LEADING):  # what is left is a wrapper
                    rule = _LayerRule(f"{parent}.{child}", key, golden, top)
                    self._layer.setdefault(key[0], []).append(rule)
        for candidates in self._layer.values():
            candidates.sort(key=lambda rule: -len(rule.key))
        #: Rules that met no parameter yet.
        self.unmet = {rule.spoken: None for candidates in self._layer.values() for rule in candidates}
        rules = {_without_class(key): _without_class(value) for key, value in (mappings.cell or {}).items()}
        self._cell = CellRules({key: value for key, value in rules.items() if key and value})
        self.unmet |= dict.fromkeys(self._cell.spoken)
        self._count = len(self.unmet)
        self.has_rules = bool(self._layer or self._cell.exact)

    def of(self, name: str) -> Iterator[tuple[str, str]]:
        """Readings with what they come from, the rules' before the name itself."""
        if self._layer:
            for count, reading in enumerate(self._renamed(tuple(name.split(".")))):
                if count == _MOST_READINGS:
                    break
                if (found := ".".join(reading)) != name:
                    yield canonical_name(found), NOWHERE if NOWHERE in reading else "layer"
        owner, _, last = name.rpartition(".")
        path, parameter, used = self._cell.golden(owner, last)
        for rule in used:
            self.unmet.pop(rule, None)
        if used:
            yield canonical_name(f"{path}.{parameter}" if path else parameter), "cell"
        yield name, "name"

    def warn_of_unmet(self) -> None:
        """Rules that came to nothing: a warning where none did, else a hint, for some modules have no parameters."""
        if not self.unmet:
            return
        met = self._count - len(self.unmet)
        logger.log(
            logging.INFO if met else logging.WARNING,
            tr_count(
                "{rules} of the layer and cell mapping matches no parameter of the target: {unmet}{hint}",
                "{rules} of the layer and cell mapping match no parameter of the target: {unmet}{hint}",
                count=len(self.unmet) if met else 2,  # of all together
                rules=tr("{count} of {all} rules", count=len(self.unmet), all=self._count) if met else tr("the rules"),
                unmet=listed(self.unmet, most=10),
                hint=tr(" (modules without parameters have none)") if met else "",
            ),
        )

    def _renamed(self, parts: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        """Every way to apply rules from the left, those with the longest keys first."""
        # Not by recursion: a name of a file can have any number of components.
        waiting: list[tuple[int, tuple[str, ...]]] = [(0, ())]
        while waiting:
            place, written = waiting.pop()
            fitting: list[_LayerRule] = []
            start = place
            while place < len(parts) and not fitting:
                fitting = [
                    rule
                    for rule in self._layer.get(parts[place], ())
                    if parts[place : place + len(rule.key)] == rule.key and (place == 0 or not rule.top)
                ]
                place += not fitting
            written += parts[start:place]
            if not fitting:
                yield written
                continue
            waiting.append((place + 1, (*written, parts[place])))
            for rule in reversed(fitting):
                self.unmet.pop(rule.spoken, None)
                waiting.append((place + len(rule.key), written + rule.golden))


def _without_class(name: str) -> str:
    """``fc2`` of ``fc2.Dense``: classes begin with a capital."""
    head, _dot, last = name.rpartition(".")
    return head if last[:1].isupper() else name


def _take_prefixed(
    target: Sequence[str], free: Mapping[str, None], pairs: Mapping[str, object], take: Callable[[str, str, str], None]
) -> None:
    ours = _by_canonical(name for name in target if name not in pairs)
    theirs = _by_canonical(free)
    longer_here = _prefix(ours, theirs)
    longer_there = _prefix(theirs, ours)
    if longer_here[1] >= longer_there[1]:
        for name, whole in ours.items():
            if name.startswith(longer_here[0]) and name[len(longer_here[0]) :] in theirs:
                take(whole, theirs[name[len(longer_here[0]) :]], "prefix")
    else:
        for name, whole in theirs.items():
            if name.startswith(longer_there[0]) and name[len(longer_there[0]) :] in ours:
                take(ours[name[len(longer_there[0]) :]], whole, "prefix")


def _prefix(longer: Iterable[str], shorter: Mapping[str, str]) -> tuple[str, int]:
    """The prefix without which most of ``longer`` are in ``shorter``, and how many."""
    counts: Counter[str] = Counter()
    for name in longer:
        parts = name.split(".")
        for count in range(1, min(len(parts), _LONGEST_PREFIX + 1)):
            if ".".join(parts[count:]) in shorter:
                counts[".".join(parts[:count]) + "."] += 1
    return counts.most_common(1)[0] if counts else ("\0", 0)
