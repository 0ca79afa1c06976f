"""One dump as proofs read it: calls of APIs and of modules, with their tensors, or with some drawn to their figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from msprobe_ms.accuracy.calls import ApiCall, Calls, RecordedTensor, map_arguments, read_calls
from msprobe_ms.accuracy.data import CannotDraw, drawn
from msprobe_ms.accuracy.execution.recorded import aligned_gradients, recorded_source
from msprobe_ms.accuracy.memory import missing_memory
from msprobe_ms.accuracy.proof.call import Call
from msprobe_ms.accuracy.proof.layers import Layer
from msprobe_ms.accuracy.proof.operation import CannotRun, Operation, Workshop
from msprobe_ms.accuracy.proof.slots import Slot
from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.dump.dialects import PYTORCH
from msprobe_ms.dump.model import Dump, Entry, Item
from msprobe_ms.dump.names import BACKWARD, FORWARD, PARAMETERS_GRAD, EntryName, parse_entry
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.frameworks.api_calls import Arguments, Value
from msprobe_ms.support.errors import DumpFormatError
from msprobe_ms.support.translation import tr


class Source:
    """A dump.json. ``seed``: of what is drawn where it holds no tensors; None: the workshop's."""

    def __init__(self, path: Path, workshop: Workshop, seed: int | None = None) -> None:
        self.path, self._workshop = path, workshop
        self._seed = workshop.seed if seed is None else seed

    def drawn_otherwise(self, times: int = 8) -> Iterator[Source]:
        """Yield the dump with other numbers drawn, each time."""
        for time in range(times):
            other = Source(self.path, self._workshop, self._seed + 1 + time)
            other.__dict__["dump"] = self.dump  # read once
            yield other

    @cached_property
    def dump(self) -> Dump:
        return read_dump(self.path)

    @cached_property
    def _calls(self) -> Calls:
        return read_calls(self.path)

    @property
    def has_tensors(self) -> bool:
        return self.dump.mode == "tensor"

    def item(self, entry: str, suffix: str) -> Item | None:
        """Return one item of an entry, ``input.0``; None where there is none."""
        found = self.dump.entries.get(entry)
        return next((item for item in (found.items if found else ()) if item.suffix == suffix), None)

    def differing_values(self, entry: str, golden: Source, counterpart: str | None) -> list[str]:
        """Say which recorded values of an entry, no tensors, differ from those of its counterpart."""
        found = self.dump.entries.get(entry)
        told = []
        for item in found.items if found is not None and counterpart is not None else ():
            other = golden.item(counterpart, item.suffix) if item.kind == "value" and counterpart is not None else None
            if other is not None and other.maximum != item.maximum:
                told.append(
                    tr(
                        "the setting {name} differs: {value} against {golden}",
                        name=item.path[-1],
                        value=item.maximum,
                        golden=other.maximum,
                    )
                )
        return told

    def gradient(self, entry: str, number: int) -> Item | None:
        """Return a gradient that arrives at a call, by its forward entry; None where there is none."""
        return self.gradients(entry)[0].get(f"input.{number}")

    def gradients(self, entry: str) -> tuple[dict[str, Item], dict[str, Item]]:
        """Return the gradients that arrive at a call, and those that it hands on: of inputs by their place, and of
        parameters by the names that all frameworks are told by."""
        parsed = parse_entry(entry)
        backward = None if parsed is None else self.dump.entries.get(str(parsed.in_direction(BACKWARD)))
        tensors = [item for item in (backward.items if backward is not None else ()) if item.kind == "tensor"]
        fed = {item.suffix: item for item in tensors if item.state == "input"}
        handed = {item.suffix.replace("output", "input", 1): item for item in tensors if item.state == "output"}
        learnt = self._learnt(parsed) if parsed is not None and parsed.is_module else {}
        return fed, {**handed, **{Slot(name, ("keyword", name), None).canonical: item for name, item in learnt.items()}}

    def _learnt(self, forward: EntryName) -> dict[str, Item]:
        """The gradients of a module's parameters by its own names."""
        name = forward.in_direction(PARAMETERS_GRAD)
        # Old dumps number no parameters_grad.
        found = self.dump.entries.get(str(name)) or self.dump.entries.get(str(replace(name, index=None)))
        return {item.path[-1]: item for item in (found.items if found else ()) if item.kind == "tensor" and item.path}

    # -- APIs ------------------------------------------------------------------------------------------------------

    def api_call(self, entry: str) -> Call:
        """Return the call of an API, ``Mint.sub.0.forward`` or ``….backward``, with values.

        :raises CannotRun: the dump does not hold its arguments
        """
        key = entry.rpartition(".")[0]
        recorded = self._calls.apis.get(key)
        if recorded is None or recorded.arguments is None:
            raise CannotRun(tr("{key}: its forward call is not in the dump, so its arguments are not known", key=key))
        value = self._loader(recorded)
        operation = Operation(self._workshop, self._calls.framework, recorded.prefix, recorded.api, recorded.attributes)
        gradients = recorded.output_gradients
        has_gradients = gradients is not None and len(gradients) == len(recorded.outputs or ())
        real = self.has_tensors
        received = aligned_gradients(recorded.arguments, recorded.input_gradients or ())
        return Call(
            f"{key}.{FORWARD}",
            recorded.api.rpartition(".")[2],
            self._calls.framework,
            self.path,
            operation,
            map_arguments(recorded.arguments, value),
            tuple(map(value, recorded.outputs)) if real and recorded.outputs is not None else None,
            tuple(map(value, gradients)) if has_gradients and gradients is not None else None,
            tuple(map(value, received)) if real and has_gradients and received is not None else None,
            real,
            _items(recorded.arguments),
        )

    def _loader(self, call: ApiCall) -> Any:
        source = recorded_source(self.dump.tensors) if self.has_tensors else drawn(call, self._seed)

        def value(leaf: Any) -> Any:
            if not isinstance(leaf, RecordedTensor):
                return leaf
            if need := missing_memory([leaf]):
                raise CannotRun(tr("{call}: its tensors need {need:.1f} GiB here", call=call.name, need=need / 2**30))
            try:
                return source(leaf)
            except (DumpFormatError, CannotDraw) as error:
                raise CannotRun(tr("{call}: {error}", call=call.name, error=error)) from error

        return value

    # -- modules ---------------------------------------------------------------------------------------------------

    def module_call(self, entry: Entry, layer: Layer, *, backward: bool = False) -> Call | None:
        """Return the call of a module that is a standard layer, without its settings; None where it is no such layer.

        ``backward``: with the gradients of its parameters, where they are of this call alone.

        :raises CannotRun: its tensors cannot be had
        """
        assert entry.parsed is not None
        shape_of_call = ApiCall(entry.name, "Functional", layer.api)
        value = self._loader(shape_of_call)
        parameters = {item.path[-1]: item for item in entry.in_state("parameters") if item.kind == "tensor"}
        inputs = entry.in_state("input")
        named = layer.arguments(
            [value(_recorded(item)) for item in inputs if item.kind == "tensor"],
            {name: value(_recorded(item)) for name, item in parameters.items()},
        )
        if named is None:
            return None
        real = self.has_tensors
        outputs = [item for item in entry.in_state("output") if item.kind == "tensor"]
        learnt = self._parameter_gradients(entry, layer, parameters) if backward else {}
        gradients = self._gradients(entry, learnt, named, value) if real else None
        return Call(
            entry.name,
            entry.parsed.class_name,
            self.dump.framework,
            self.path,
            Operation(self._workshop, PYTORCH.name, "Functional", layer.api),
            Arguments((), named),
            tuple(value(_recorded(item)) for item in outputs) if real else None,
            None if gradients is None else gradients[0],
            None if gradients is None else gradients[1],
            real,
            _module_items(layer, inputs, parameters),
            True,
        )

    def _gradients(
        self, entry: Entry, learnt: Mapping[str, Item], named: Mapping[str, Value], value: Any
    ) -> tuple[list[Value], list[Value]] | None:
        """Gradients that arrive, and those of each argument, as far as they are of this call alone."""
        assert entry.parsed is not None
        backward = self.dump.entries.get(str(entry.parsed.in_direction(BACKWARD)))
        if backward is None:
            return None
        arrived = [value(_recorded(item)) for item in backward.in_state("input") if item.kind == "tensor"]
        handed = [value(_recorded(item)) for item in backward.in_state("output") if item.kind == "tensor"]
        outputs = [item for item in entry.in_state("output") if item.kind == "tensor"]
        if len(arrived) != len(outputs):
            return None
        first = handed[0] if handed and handed[0].values.shape == named["input"].values.shape else None
        known = {"input": first, **{name: value(_recorded(item)) for name, item in learnt.items()}}
        floats = [
            name for name, each in named.items() if isinstance(each, TypedArray) and each.values.dtype.kind == "f"
        ]
        return arrived, [known.get(name) for name in floats]

    def _parameter_gradients(self, entry: Entry, layer: Layer, parameters: Mapping[str, Item]) -> dict[str, Item]:
        """The gradients of a module's parameters by PyTorch's names, but for those that other calls have a share in."""
        assert entry.parsed is not None
        again = replace(entry.parsed, index=(entry.parsed.index or 0) + 1)
        if entry.parsed.index or str(again) in self.dump.entries:
            return {}
        there = self._learnt(entry.parsed)
        own = layer.own_names(parameters)
        return {
            ours: there[theirs]
            for ours, theirs in own.items()
            if theirs in there and there[theirs].shape == parameters[theirs].shape
        }


def _recorded(item: Item) -> RecordedTensor:
    return RecordedTensor(
        parse_dtype(item.dtype).name,
        item.shape if isinstance(item.shape, tuple) else (),
        item.maximum,
        item.minimum,
        item.mean,
        item.norm,
        data_name=item.data_name,
        place=f"{PARAMETERS_GRAD if item.state == PARAMETERS_GRAD else FORWARD}.{item.suffix}",
        entry=item.entry,
    )


def _items(arguments: Arguments) -> dict[str, str]:
    """Place of an argument → the item that it was, of arguments that are one tensor."""
    positional = {f"positional.{number}": leaf for number, leaf in enumerate(arguments.positional)}
    keywords = {f"keyword.{name}": leaf for name, leaf in arguments.keywords.items()}
    return {
        place: leaf.place.partition(".")[2]
        for place, leaf in {**positional, **keywords}.items()
        if isinstance(leaf, RecordedTensor)
    }


def _module_items(layer: Layer, inputs: Sequence[Item], parameters: Mapping[str, Item]) -> dict[str, str]:
    first = next(item.suffix for item in inputs if item.kind == "tensor")
    own = layer.own_names(parameters)
    found = {f"keyword.{name}": parameters[path].suffix for name, path in own.items()}
    return {**found, "keyword.input": first}
