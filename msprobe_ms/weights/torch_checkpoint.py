"""PyTorch's ``.pt``, ``.pth`` and ``.bin``: state dicts and training checkpoints, read without torch or unpickling."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import NoReturn

import numpy as np

from msprobe_ms.arrays.torch_file import Archive, view_of
from msprobe_ms.arrays.torch_pickle import Refused, TensorRecord
from msprobe_ms.support.errors import DumpFormatError
from msprobe_ms.weights.model import Checkpoint, Weight, clean
from msprobe_ms.weights.torch_state import (
    LONGEST_STATE,
    Stranger,
    Unread,
    is_tensor,
    mapping_in,
    read_state,
    tensors_in,
)

#: Keys under which training checkpoints keep the model's state dict.
_MODEL_KEYS = ("state_dict", "model_state_dict", "model", "module", "network", "net", "params", "weights")


def read(path: Path, archive: Archive) -> Checkpoint:
    """Read the tensors of one file in their order; of a training checkpoint those of the model, the others are counted.

    :raises DumpFormatError: the archive or its description is damaged
    """
    try:
        value = read_state(archive.read("data.pkl", LONGEST_STATE))
    except Refused as error:
        raise DumpFormatError(f"{path}: record data.pkl: {error}") from error
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
                found.skip(f"tensors under {clean(str(other))[:100]}", count)
        value = content[key]
    return value


def _holds_tensors(value: object) -> bool:
    return next(tensors_in(value), None) is not None


def _refuse(path: Path, name: str, made_by: str) -> NoReturn:
    raise DumpFormatError(f"{path}: {name}: made by {clean(made_by)[:200]}, which is not read: a sparse tensor, say")


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
            raise DumpFormatError(f"{self._path}: {name}: {error}") from error
        except OSError as error:
            raise DumpFormatError(f"{self._path}: {name}: cannot be read: {error.strerror or error}") from error
