"""Prove a call: read it from both dumps, or the calls inside of it, experiment, and say which side is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from msprobe_ms.accuracy.proof.call import Call
from msprobe_ms.accuracy.proof.decide import Producer, decide
from msprobe_ms.accuracy.proof.layers import Layer, layer_of
from msprobe_ms.accuracy.proof.operation import CannotRun, Workshop
from msprobe_ms.accuracy.proof.question import Question
from msprobe_ms.accuracy.proof.settings import fitted
from msprobe_ms.accuracy.proof.slots import GRADIENT, Slot
from msprobe_ms.accuracy.proof.source import Source
from msprobe_ms.accuracy.proof.statistical import Sides, decide_by_statistics, module_by_statistics
from msprobe_ms.accuracy.proof.verdict import Finding, Proof
from msprobe_ms.accuracy.proof.words import golden_title, like_settings, title_of
from msprobe_ms.comparison.node.lookup import Neighbours
from msprobe_ms.dump.model import ancestors
from msprobe_ms.dump.names import DEBUG, FORWARD, EntryName, is_update, parse_entry
from msprobe_ms.support.translation import tr, tr_count, tr_join

#: Findings that hold of a call inside of a module whatever the other side has in its place: the same layer is often
#: made of other calls there, which take in and give out other tensors.
_OF_A_CALL = (Finding.OPERATOR, Finding.SETTING, Finding.EXCHANGED)

_OTHER_CALLS = tr("compare the calls inside of both modules, and their arguments: the modules compute different things")
_TO_RECORD = tr("record both sides at level mix, compare them, and prove the call at which the error begins")
_MIX = tr("dump both sides at level mix, so that the calls inside of it can be run one by one")


def can_be_run(name: EntryName) -> bool:
    """Return whether an entry is a call: a saved value and an update of a parameter are none."""
    return name.direction != DEBUG and not is_update(name)


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
                raise CannotRun(tr("{entry} is no call of an API or a module", entry=entry))
            if not can_be_run(parsed):
                raise CannotRun(self._no_call(parsed))
            self._backward = parsed.direction != FORWARD
            if not parsed.is_module:
                return self._api(entry, counterpart)
            return self._module(str(parsed.in_direction(FORWARD)), _forward(counterpart))
        except CannotRun as reason:
            return Proof(entry, counterpart, Finding.UNDECIDED, tr("{reason}", reason=reason))
        except MemoryError:
            sentence = tr("there is not enough memory for its tensors in float64")
            return Proof(entry, counterpart, Finding.UNDECIDED, sentence)

    def _no_call(self, parsed: EntryName) -> str:
        """Why a saved value or an update cannot be run, and what of an update differs."""
        entry, golden = self._question.entry, self._golden
        if not is_update(parsed):
            return tr("{entry} is a recorded value, no call; {record}", entry=entry, record=_TO_RECORD)
        told = tr("{entry} is an update of parameters, which is not run again", entry=entry)
        differ = [] if golden is None else self._target.differing_values(entry, golden, self._question.counterpart)
        return tr_join(tr("; "), [told, *(differ or [_TO_RECORD])])

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
                where = tr("inside of {module}, {call}: {sentence}", module=entry, call=inner, sentence=proof.sentence)
                return replace(proof, sentence=where)
            if proof is not None and proof.finding is Finding.RIGHT:
                right.append(inner)
        try:
            proof = self._layer(entry, counterpart)
        except CannotRun as reason:
            proof = Proof(entry, counterpart, Finding.UNDECIDED, tr("{reason}", reason=reason))
        return self._of_calls_inside(proof, right) if proof.finding is Finding.UNDECIDED and right else proof

    def _of_calls_inside(self, proof: Proof, right: Sequence[str]) -> Proof:
        """The proof of a module that is no layer, where calls inside of it are right by their own arguments."""
        what = tr_count(
            "inside of {module}, the one call that could be run alone is right",
            "inside of {module}, the {count} calls that could be run alone are right",
            len(right),
            module=proof.target,
        )
        if self._golden is not None and proof.golden is not None:
            apart = Sides(self._target, self._golden).results_apart(proof.target, proof.golden)
            if apart:
                but = tr("{what}, but the module's output differs from the golden's ({apart})", what=what, apart=apart)
                return replace(proof, sentence=but).with_notes(_OTHER_CALLS)
        return replace(proof, finding=Finding.RIGHT, sentence=what).with_notes(
            tr("the module as a whole is undecided: {reason}", reason=proof.sentence)
        )

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
            raise CannotRun(tr("{layer} is no layer whose formula is known; {mix}", layer=classes[0], mix=_MIX))
        target = self._made(self._target, entry, known[0])
        golden = self._made(self._golden, counterpart, known[-1]) if self._golden is not None and counterpart else None
        if self._golden is not None and golden is None:
            raise CannotRun(tr("{entry} has no counterpart in the golden", entry=entry))
        if not target.is_recorded or (golden is not None and not golden.is_recorded):
            drawn = (self._made(source, entry, known[0]) for source in self._target.drawn_otherwise())
            return module_by_statistics(
                target, golden, self._sources, self._producer(target), known[0], drawn, backward=self._backward
            )
        ours, theirs, like = fitted(target, golden, (known[0], known[-1]))
        if ours is None:
            return _not_reproduced(target, golden, theirs)
        if golden is not None and theirs is None:
            sentence = tr(
                "{title} is right; {golden} is not what its class says: {what}",
                title=title_of(ours),
                golden=golden_title(golden, target),
                what=_no_settings(golden.title),
            )
            return Proof(entry, counterpart, Finding.GOLDEN, sentence)
        proof = decide(ours, theirs, self._producer(ours), backward=self._backward)
        return proof.with_notes(*like_settings(ours, like)) if proof.finding is Finding.RIGHT else proof

    def _made(self, source: Source, name: str, layer: Layer) -> Call:
        """The call of a module as a layer, without settings. Raises CannotRun: it has other inputs or parameters."""
        call = source.module_call(source.dump.entries[name], layer, backward=self._backward)
        if call is None:
            raise CannotRun(
                tr(
                    "{module} has other inputs or parameters than {function} takes; {mix}",
                    module=name,
                    function=layer.api,
                    mix=_MIX,
                )
            )
        return call


def _forward(entry: str | None) -> str | None:
    parsed = parse_entry(entry) if entry else None
    return entry if parsed is None else str(parsed.in_direction(FORWARD))


def _class_of(source: Source, name: str) -> str:
    """The class of a module. Raises CannotRun: it is not in the dump."""
    entry = source.dump.entries.get(name)
    if entry is None or entry.parsed is None:
        raise CannotRun(tr("{entry} is not in the dump", entry=name))
    return entry.parsed.class_name


def _not_reproduced(target: Call, golden: Call | None, theirs: Call | None) -> Proof:
    what = _no_settings(target.title if golden is None or theirs is None else golden.title)
    if golden is None or theirs is None:
        entry = golden.entry if golden is not None else None
        return Proof(target.entry, entry, Finding.UNDECIDED, what, notes=(_MIX,))
    titles = {"title": title_of(target), "golden": golden_title(golden, target)}
    if layer_of(target.title) is None:
        sentence = tr("{title} computes something else than {golden}: {what}", **titles, what=what)
        return Proof(target.entry, golden.entry, Finding.OPERATION, sentence)
    sentence = tr("{title} is wrong: {what}; those of {golden} do give its recorded output", **titles, what=what)
    return Proof(target.entry, golden.entry, Finding.OPERATOR, sentence)


def _no_settings(layer: str) -> str:
    return tr("with its recorded input and parameters, no settings of {layer} give its recorded output", layer=layer)
