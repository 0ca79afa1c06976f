"""Prove a call: read it from both dumps, or the calls inside of it, experiment, and say which side is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from msprobe_ms.accuracy.proof.call import Call
from msprobe_ms.accuracy.proof.decide import Producer, decide
from msprobe_ms.accuracy.proof.layers import Layer, layer_of
from msprobe_ms.accuracy.proof.operation import CannotRun, Workshop
from msprobe_ms.accuracy.proof.question import Question
from msprobe_ms.accuracy.proof.settings import fitted
from msprobe_ms.accuracy.proof.slots import GRADIENT, Slot
from msprobe_ms.accuracy.proof.source import Source
from msprobe_ms.accuracy.proof.statistical import decide_by_statistics, module_by_statistics
from msprobe_ms.accuracy.proof.verdict import Finding, Proof
from msprobe_ms.accuracy.proof.words import golden_title, title_of
from msprobe_ms.comparison.node.lookup import Neighbours
from msprobe_ms.dump.model import ancestors
from msprobe_ms.dump.names import FORWARD, parse_entry

#: Findings that hold of a call inside of a module whatever the other side has in its place: the same layer is often
#: made of other calls there, which take in and give out other tensors.
_OF_A_CALL = (Finding.OPERATOR, Finding.SETTING, Finding.EXCHANGED)

_MIX = "dump both sides at level mix, so that the calls inside of it can be run one by one"


def prove(question: Question, workshop: Workshop | None = None) -> Proof:
    """Prove the call that is asked about; ``workshop``: processes that were begun already.

    :raises MsprobeError: a dump cannot be read
    """
    if workshop is not None:
        return _Proving(question, workshop).proof()
    with Workshop() as own:
        return _Proving(question, own).proof()


class _Proving:
    def __init__(self, question: Question, workshop: Workshop) -> None:
        self._question, self._workshop = question, workshop
        self._target = Source(question.target, workshop)
        self._golden = Source(question.golden, workshop) if question.golden is not None else None
        #: Whether gradients are asked about.
        self._backward = False

    def proof(self) -> Proof:
        entry, counterpart = self._question.entry, self._question.counterpart
        try:
            parsed = parse_entry(entry)
            if parsed is None:
                raise CannotRun(f"{entry} is no call of an API or a module")
            self._backward = parsed.direction != FORWARD
            if not parsed.is_module:
                return self._api(entry, counterpart)
            return self._module(str(parsed.in_direction(FORWARD)), _forward(counterpart))
        except CannotRun as reason:
            return Proof(entry, counterpart, Finding.UNDECIDED, f"cannot be decided: {reason}")
        except MemoryError:
            sentence = "cannot be decided: there is not enough memory for its tensors in float64"
            return Proof(entry, counterpart, Finding.UNDECIDED, sentence)

    # -- APIs ------------------------------------------------------------------------------------------------------

    def _api(self, entry: str, counterpart: str | None) -> Proof:
        target = self._target.api_call(entry)
        golden = self._golden.api_call(counterpart) if self._golden is not None and counterpart else None
        frameworks = [each.framework for each in (target, golden) if each is not None]
        self._workshop.begin(frameworks)
        if target.is_recorded and (golden is None or golden.is_recorded):
            return decide(target, golden, self._producer(target), backward=self._backward)
        return decide_by_statistics(target, golden, self._sources, self._producer(target), backward=self._backward)

    @property
    def _sources(self) -> tuple[Source, Source | None]:
        return self._target, self._golden

    def _producer(self, call: Call) -> Producer:
        """Say of an argument of a call of the target which call made it."""

        def produced(slot: Slot) -> str:
            kind, key = slot.place
            if kind == GRADIENT:
                item = self._target.gradient(call.entry, int(key))
            else:
                suffix = call.items.get(f"{kind}.{key}")
                item = self._target.item(call.entry, suffix) if suffix is not None else None
            if item is None:
                return ""
            made = Neighbours(self._target.dump, [item]).producer(item)
            return made.entry if made is not None else ""

        return produced

    # -- modules ---------------------------------------------------------------------------------------------------

    def _module(self, entry: str, counterpart: str | None) -> Proof:
        """Prove the APIs inside of a module, in their order, and then the module as a layer."""
        right: list[str] = []
        for inner in self._apis_in(entry):
            proof = self._inside(inner)
            if proof is not None and proof.finding in _OF_A_CALL:
                return replace(proof, sentence=f"inside of {entry}, {inner}: {proof.sentence}")
            if proof is not None and proof.finding is Finding.RIGHT:
                right.append(inner)
        proof = self._layer(entry, counterpart)
        if proof.finding is Finding.UNDECIDED and right:
            return replace(
                proof,
                finding=Finding.RIGHT,
                sentence=f"each of the {len(right)} calls inside of {entry} that could be run alone is right",
            ).with_notes(proof.sentence)
        return proof

    def _inside(self, entry: str) -> Proof | None:
        """The proof of an API inside of a module; None where nothing can be said of it."""
        try:
            proof = self._api(entry, self._question.counterparts.get(entry))
        except CannotRun:
            return None
        return None if proof.finding is Finding.UNDECIDED else proof

    def _apis_in(self, entry: str) -> Iterator[str]:
        entries = self._target.dump.entries
        for name, inner in entries.items():
            parsed = inner.parsed
            is_call = parsed is not None and not parsed.is_module and parsed.direction == FORWARD
            if is_call and entry in ancestors(entries, name):
                yield name

    def _layer(self, entry: str, counterpart: str | None) -> Proof:
        """Prove a module as the standard layer that it, or its counterpart, is by the name of its class."""
        classes = [_class_of(self._target, entry)]
        if self._golden is not None and counterpart is not None:
            classes.append(_class_of(self._golden, counterpart))
        known = [layer for name in classes if (layer := layer_of(name)) is not None]
        if not known:
            raise CannotRun(f"{classes[0]} is no layer whose formula is known; {_MIX}")
        target = self._made(self._target, entry, known[0])
        golden = self._made(self._golden, counterpart, known[-1]) if self._golden is not None and counterpart else None
        if self._golden is not None and golden is None:
            raise CannotRun(f"{entry} has no counterpart in the golden")
        if not target.is_recorded or (golden is not None and not golden.is_recorded):
            drawn = (self._made(source, entry, known[0]) for source in self._target.drawn_otherwise())
            return module_by_statistics(
                target, golden, self._sources, self._producer(target), known[0], drawn, backward=self._backward
            )
        ours = fitted(target, known[0])
        theirs = fitted(golden, known[-1]) if golden is not None else None
        if ours is None:
            return _not_reproduced(target, golden, theirs)
        if golden is not None and theirs is None:
            sentence = (
                f"{title_of(ours)} is right, {golden_title(golden, target)} is not what its class says: no settings "
                "make of its recorded input and parameters what it gave out"
            )
            return Proof(entry, counterpart, Finding.GOLDEN, sentence)
        return decide(ours, theirs, self._producer(ours), backward=self._backward)

    def _made(self, source: Source, name: str, layer: Layer) -> Call:
        """The call of a module as a layer, without settings. Raises CannotRun: it has other inputs or parameters."""
        call = source.module_call(source.dump.entries[name], layer, backward=self._backward)
        if call is None:
            raise CannotRun(f"{name} has other inputs or parameters than {layer.api} takes; {_MIX}")
        return call


def _forward(entry: str | None) -> str | None:
    parsed = parse_entry(entry) if entry else None
    return entry if parsed is None else str(parsed.in_direction(FORWARD))


def _class_of(source: Source, name: str) -> str:
    """The class of a module. Raises CannotRun: it is not in the dump."""
    entry = source.dump.entries.get(name)
    if entry is None or entry.parsed is None:
        raise CannotRun(f"{name} is not in the dump")
    return entry.parsed.class_name


def _not_reproduced(target: Call, golden: Call | None, theirs: Call | None) -> Proof:
    kind = target.title if golden is None or theirs is None else golden.title
    what = f"no settings of a {kind} make of the recorded input and parameters what was recorded of its output"
    if golden is not None and theirs is not None and layer_of(target.title) is None:
        sentence = f"{title_of(target)} computes something else than {golden_title(golden, target)}: {what}"
        return Proof(target.entry, golden.entry, Finding.OPERATION, sentence)
    if golden is not None and theirs is not None:
        sentence = (
            f"{title_of(target)} is wrong by its own reference: {what}, and those of {golden_title(golden, target)} "
            "are reproduced"
        )
        return Proof(target.entry, golden.entry, Finding.OPERATOR, sentence)
    entry = golden.entry if golden is not None else None
    return Proof(target.entry, entry, Finding.UNDECIDED, f"cannot be decided: {what}", notes=(_MIX,))
