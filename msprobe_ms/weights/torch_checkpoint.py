"""PyTorch's ``.pt``, ``.pth`` and ``.bin``: state dicts and training checkpoints, read without torch or unpickling.

The pickle of a checkpoint becomes plain values: dicts, lists, tensors' places. Nothing in it is ever called. Where
``arrays.torch_pickle`` refuses whatever is no part of one tensor, here the rest of a training checkpoint (arguments,
schedulers, classes of the user's own) becomes a ``Stranger``: a name, and the state it was given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeGuard

import numpy as np

from msprobe_ms.arrays.torch_file import Archive, view_of
from msprobe_ms.arrays.torch_pickle import (
    LITERALS,
    STEPS,
    Machine,
    Refused,
    Step,
    Storage,
    TensorRecord,
    is_known,
    run_machine,
)
from msprobe_ms.support.errors import DumpFormatError
from msprobe_ms.support.translation import tr
from msprobe_ms.weights.model import Checkpoint, Weight, clean

#: Longest description read, in bytes; a tensor takes some 200.
LONGEST_STATE = 64 << 20
_DEEPEST = 64
#: What a module keeps its state dict's tensors in.
_OF_MODULES = ("_parameters", "_buffers", "_modules")
#: Values looked at in the arguments of one call; those that rebuild tensors have some ten.
_MOST_LOOKED_AT = 100


@dataclass(slots=True, eq=False)
class Stranger:
    """An object that is not rebuilt: the class or function that would, its state, and what it was filled with.

    ``items``  of a dict of the user's own class; ``values`` of such a list
    """

    name: str
    state: object = None
    items: dict[str | int, Any] = field(default_factory=dict)
    values: list[Any] = field(default_factory=list)


class Unread(Stranger):
    """An object made of tensors or their numbers in a way that is not known here: a sparse or quantized tensor."""

    __slots__ = ()


def _stranger(name: str, arguments: object) -> Stranger:
    return Unread(name) if _has_numbers(arguments) else Stranger(name)


def _has_numbers(arguments: object) -> bool:
    """Whether there is a tensor or a storage in what a call was given; looks no further than a call of torch goes."""
    waiting = [arguments]
    for _ in range(_MOST_LOOKED_AT):
        if not waiting:
            break
        found = waiting.pop()
        if isinstance(found, (TensorRecord, Storage, Unread)):
            return True
        if isinstance(found, (tuple, list)):
            waiting += found[:_MOST_LOOKED_AT]
    return False


class _Lenient(Machine):
    def name(self, text: str) -> None:
        name = text.replace(" ", ".")
        if is_known(name):
            super().name(text)
        else:
            self.stack.append(Stranger(name))

    def storage(self, _: object) -> None:
        kind, storage_type, key, *rest = self.stack.pop()
        if isinstance(storage_type, Stranger) and type(key) is str:  # of numbers not known here: quantized
            self.stack.append(Storage(key, None))
        else:
            self.stack.append((kind, storage_type, key, *rest))
            super().storage(None)

    def reduce(self, _: object) -> None:
        arguments, made_by = self.stack.pop(), self.stack.pop()
        if isinstance(made_by, Stranger) and _is_npu_tensor(made_by.name):
            self.name("torch._utils _rebuild_tensor_v2")
            made_by, arguments = self.stack.pop(), arguments[:6]  # what follows is the NPU's own layout
        if isinstance(made_by, Stranger):
            dictionary = made_by.name == "collections.defaultdict"
            self.stack.append({} if dictionary else _stranger(made_by.name, arguments))
            return
        depth = len(self.stack)
        self.stack += [made_by, arguments]
        try:
            super().reduce(None)
        except (Refused, ValueError, TypeError, LookupError, AttributeError):
            if not _has_numbers(arguments):
                raise
            # One tensor that cannot be rebuilt costs itself alone.
            self.stack[depth:] = [Unread(str(made_by))]

    def new_object(self, _: object) -> None:
        arguments, made_by = self.stack.pop(), self.stack.pop()
        self.stack.append(_stranger(str(getattr(made_by, "name", made_by)), arguments))

    def new_object_with_keywords(self, _: object) -> None:
        self.stack.pop()
        self.new_object(None)

    def build(self, _: object) -> None:
        state, target = self.stack.pop(), self.stack[-1]
        if isinstance(target, Stranger):
            target.state = state

    def update(self, pairs: list[Any]) -> None:
        target = self.stack[-1]
        filled = target.items if isinstance(target, Stranger) else target
        if isinstance(filled, dict):
            for key, value in zip(pairs[::2], pairs[1::2], strict=True):
                if type(key) in (float, bool, type(None)):
                    key = str(key)
                elif type(key) not in (str, int):  # hashing a tuple of tuples of … can take for ever
                    key = f"({type(key).__name__} {len(filled)})"
                filled[key] = value

    def extend(self, values: list[Any]) -> None:
        target = self.stack[-1]
        filled = target.values if isinstance(target, Stranger) else target
        if isinstance(filled, list):
            filled.extend(values)

    def empty_set(self, _: object) -> None:
        self.stack.append(Stranger("set"))

    def frozen_set(self, _: object) -> None:
        self.pop_to_mark()
        self.stack.append(Stranger("frozenset"))

    def drop_items(self, _: object) -> None:
        self.pop_to_mark()

    def pop(self, _: object) -> None:
        self.stack.pop()


_LITERALS = LITERALS | {
    "LONG4", "INT", "LONG", "FLOAT", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BINUNICODE8", "BYTEARRAY8",
    "BINSTRING", "SHORT_BINSTRING", "STRING", "UNICODE",
}  # fmt: skip

_STEPS: Mapping[str, Step] = {
    **STEPS,
    "BINPERSID": lambda machine, _: machine.storage(_),
    "NEWOBJ": lambda machine, _: machine.new_object(_),
    "NEWOBJ_EX": lambda machine, _: machine.new_object_with_keywords(_),
    "BUILD": lambda machine, _: machine.build(_),
    "EMPTY_SET": lambda machine, _: machine.empty_set(_),
    "FROZENSET": lambda machine, _: machine.frozen_set(_),
    "ADDITEMS": lambda machine, _: machine.drop_items(_),
    "POP": lambda machine, _: machine.pop(_),
    "POP_MARK": lambda machine, _: machine.drop_items(_),
}


def read_state(data: bytes) -> object:
    """Read what the pickle holds, tensors as ``TensorRecord``.

    :raises Refused: it is damaged or too long
    """
    if len(data) > LONGEST_STATE:
        raise Refused(
            tr(
                "{count} bytes are more than are read of a description ({longest_state})",
                count=len(data),
                longest_state=LONGEST_STATE,
            )
        )
    return run_machine(_Lenient(_STEPS, _LITERALS), data)


def _is_npu_tensor(name: str) -> bool:
    return name.startswith("torch_npu.") and name.endswith("._rebuild_npu_tensor")


def tensors_in(value: object) -> Iterator[tuple[tuple[str, ...], TensorRecord | Unread]]:
    """Yield every tensor with the keys that lead to it.

    A module that was saved whole gives those of its state dict, any other object those of its attributes.
    """
    # Each container once: references can form rings, and trees of exponential size.
    seen: set[int] = set()
    # Not by recursion: nesting can be deeper than the interpreter's stack.
    waiting: list[tuple[tuple[str, ...], object]] = [((), value)]
    while waiting:
        path, found = waiting.pop()
        if is_tensor(found):
            yield path, found
        elif isinstance(found, (dict, list, tuple, Stranger)) and id(found) not in seen and len(path) <= _DEEPEST:
            seen.add(id(found))
            waiting += reversed([((*path, *key), member) for key, member in _members(found)])


def mapping_in(value: object) -> dict[Any, Any]:
    """What a dict holds, also one of the user's own class; {} for anything else."""
    return value if isinstance(value, dict) else value.items if isinstance(value, Stranger) else {}


def is_tensor(value: object) -> TypeGuard[TensorRecord | Unread]:
    """Also one that cannot be read, unless it has a state, as a module has."""
    return isinstance(value, TensorRecord) or (isinstance(value, Unread) and value.state is None)


def _members(value: dict[Any, Any] | list[Any] | tuple[Any, ...] | Stranger) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, Stranger):
        state = value.state if isinstance(value.state, dict) else {}
        if _OF_MODULES[0] in state:
            yield from (((), state.get(key)) for key in _OF_MODULES)
        else:
            yield from (((str(key),), member) for key, member in state.items())
        yield from (((str(key),), member) for key, member in value.items.items())
        yield from (((str(place),), member) for place, member in enumerate(value.values))
    elif isinstance(value, dict):
        yield from (((str(key),), member) for key, member in value.items())
    else:
        yield from (((str(place),), member) for place, member in enumerate(value))


#: Keys under which training checkpoints keep the model's state dict.
_MODEL_KEYS = ("state_dict", "model_state_dict", "model", "module", "network", "net", "params", "weights")


def read(path: Path, archive: Archive) -> Checkpoint:
    """Read the tensors of one file in their order; of a training checkpoint those of the model, the others are counted.

    :raises DumpFormatError: the archive or its description is damaged
    """
    try:
        value = read_state(archive.read("data.pkl", LONGEST_STATE))
    except Refused as error:
        raise DumpFormatError(tr("{path}: record data.pkl: {error}", path=path, error=error)) from error
    found = Checkpoint(path, "PyTorch checkpoint")
    reader = _Reader(path, archive)
    for keys, record in tensors_in(_model(value, found)):
        name = clean(".".join(keys)) or "tensor"
        if isinstance(record, Unread):
            found.add(Weight(name, "unknown", (), partial(_refuse, path, name, record.name)))
            continue
        place = (record.storage.key, record.offset, record.shape, record.strides)
        found.add(Weight(name, record.dtype, record.shape, partial(reader.load, name, record), place))
    return found


def _model(value: object, found: Checkpoint) -> object:
    """The model's part of a training checkpoint, however deep; what lies beside it is counted."""
    while (content := mapping_in(value)) and not any(map(is_tensor, content.values())):
        parts = {key: content[key] for key in _MODEL_KEYS if isinstance(content.get(key), (dict, Stranger))}
        key = next((key for key, part in parts.items() if _holds_tensors(part)), None)
        if key is None:
            break
        for other, member in content.items():
            if other != key and (count := sum(1 for _ in tensors_in(member))):
                found.skip(tr("tensors under {other}", other=clean(str(other))[:100]), count)
        value = content[key]
    return value


def _holds_tensors(value: object) -> bool:
    return next(tensors_in(value), None) is not None


def _refuse(path: Path, name: str, made_by: str) -> NoReturn:
    raise DumpFormatError(
        tr(
            "{path}: {name}: made by {made_by}, which is not read: a sparse tensor, say",
            path=path,
            name=name,
            made_by=clean(made_by)[:200],
        )
    )


class _Reader:
    """Loads tensors of one archive, which stays open; the storage used last is kept for its next tensor."""

    def __init__(self, path: Path, archive: Archive) -> None:
        self._path, self._archive = path, archive
        self._key, self._data = "", b""

    def load(self, name: str, record: TensorRecord) -> np.ndarray:
        try:
            if record.storage.key != self._key:
                self._key, self._data = "", b""
                self._data = self._archive.read(f"data/{record.storage.key}")
                self._key = record.storage.key
            return view_of(record, self._data, self._archive.byte_order())
        except Refused as error:
            raise DumpFormatError(tr("{path}: {name}: {error}", path=self._path, name=name, error=error)) from error
        except OSError as error:
            raise DumpFormatError(
                tr(
                    "{path}: {name}: cannot be read: {strerror}",
                    path=self._path,
                    name=name,
                    strerror=error.strerror or error,
                )
            ) from error
