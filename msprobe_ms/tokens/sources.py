"""Where logits lie: dumps of this package, msit's trees, folders of single files; read token by token."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from msprobe_ms.arrays.npy import check_regular, load_array
from msprobe_ms.arrays.torch_file import read_tensor
from msprobe_ms.dump.model import Dump, Entry, Item
from msprobe_ms.dump.names import FORWARD
from msprobe_ms.dump.reading.locate import find_places
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.text import listed
from msprobe_ms.support.translation import tr

#: ``logits_{task}_{key}_{token}``, as msit writes single files.
_FILE = re.compile(r"logits_(.+)_([0-9]{1,9})")
_SUFFIXES = (".pth", ".pt", ".npy", ".bin")
#: Files that are looked at below a folder.
_MOST_FILES = 1_000_000


class Place(NamedTuple):
    """Whose logits: ``key`` names the sequences (a task, or nothing), ``token`` counts the model's calls from 0."""

    key: str
    token: int


@dataclass(frozen=True, slots=True)
class Logits:
    """The logits of one call of the model. ``load`` gives them and their dtype, which the array may not have; ``fed``
    tells what the model was called with, as far as it was recorded: equal texts for equal inputs."""

    path: Path
    load: Callable[[], tuple[np.ndarray, str]]
    fed: str = ""


def find_logits(path: Path, name: str | None = None) -> dict[Place, Logits]:
    """Return the logits below ``path``, in the order of their tokens.

    ``name``: the module that gives them, ``lm_head``; without one it is the module that is done last.

    :raises UsageError: there are none, or nothing tells which they are
    """
    if not path.exists():
        raise UsageError(
            tr("{path}: no such file or folder; accepted are a dump with tensors, or a folder of logits", path=path)
        )
    files = _files(path) if path.is_dir() else []
    for found in (_single_files(files), _tree(files, path, name)):
        if found:
            return dict(sorted(found.items()))
    found = _dumped(path, name)
    if not found:
        raise UsageError(
            tr(
                "{path}: holds no logits; accepted are a dump of task tensor, a tree of msit, and "
                "logits_<task>_<token>.npy or .pth",
                path=path,
            )
        )
    return dict(sorted(found.items()))


def _files(folder: Path) -> list[Path]:
    found = []
    for file in folder.rglob("*"):
        if file.suffix in _SUFFIXES:
            found.append(file)
            if len(found) > _MOST_FILES:
                raise UsageError(
                    tr(
                        "{folder}: holds more than {most_files} tensor files; give the folder of the logits",
                        folder=folder,
                        most_files=_MOST_FILES,
                    )
                )
    return found


def _load(file: Path) -> tuple[np.ndarray, str]:
    if file.suffix in (".npy", ".bin"):
        array = load_array(file, None)
        return array, array.dtype.name
    check_regular(file)
    return read_tensor(file)


def _load_item(dump: Dump, item: Item) -> tuple[np.ndarray, str]:
    return dump.tensors.load(item), item.dtype or ""


def _single_files(files: list[Path]) -> dict[Place, Logits]:
    found = {}
    for file in files:
        if match := _FILE.fullmatch(file.stem):
            found[Place(match[1], int(match[2]))] = Logits(file, partial(_load, file))
    return found


def _tree(files: list[Path], path: Path, name: str | None) -> dict[Place, Logits]:
    """Of msit: ``{token}/{module}/output….pth`` below a folder a process."""
    modules: dict[str, dict[Place, Logits]] = {}
    for file in files:
        token = file.parent.parent.name
        if file.stem.split("_")[0] == "output" and token.isdecimal() and len(token) < 10:
            modules.setdefault(file.parent.name, {})[Place("", int(token))] = Logits(file, partial(_load, file))
    if not modules:
        return {}
    if name is not None:
        wanted = [each for each in modules if each == name or each.endswith(f".{name}")]
    else:
        wanted = list(modules) if len(modules) == 1 else [each for each in modules if each.endswith("lm_head")]
    if len(wanted) != 1:
        raise UsageError(
            tr(
                "{path}: {modules} have outputs; say which gives the logits: --logits {other_modules}",
                path=path,
                modules=listed(sorted(modules), 8),
                other_modules=sorted(modules)[-1],
            )
        )
    return modules[wanted[0]]


def _dumped(path: Path, name: str | None) -> dict[Place, Logits]:
    """Of this package: the calls of one module, over one step or many."""
    found: dict[Place, Logits] = {}
    for _, file in sorted(find_places(path).items(), key=lambda each: (each[0].step or 0, each[0].rank)):
        dump = read_dump(file, sketches=False)
        calls = list(_calls(dump, name))
        if not calls and name is not None:
            raise UsageError(
                tr(
                    "{file}: no module {name} with tensor files of its results; accepted are {modules}",
                    file=file,
                    name=name,
                    modules=_modules(dump),
                )
            )
        fed = list(_fed(dump))
        for number, (_, item) in enumerate(calls):
            given = fed[number] if len(fed) == len(calls) else ""
            found[Place("", len(found))] = Logits(file, partial(_load_item, dump, item), given)
    return found


def _calls(dump: Dump, name: str | None) -> Iterator[tuple[Entry, Item]]:
    """The calls of the module that gives the logits, with their first result."""
    outputs = dict[str, list[tuple[Entry, Item]]]()
    last = ""
    for entry in dump.entries.values():
        parsed = entry.parsed
        if parsed is None or not parsed.is_module or parsed.direction != FORWARD:
            continue
        item = next((each for each in entry.items if each.state == "output" and each.data_name), None)
        if item is not None:
            outputs.setdefault(parsed.name, []).append((entry, item))
            last = parsed.name
    if name is not None:
        last = next((each for each in outputs if each == name or each.endswith(f".{name}")), "")
    yield from outputs.get(last, ())


def _fed(dump: Dump) -> Iterator[str]:
    """What each call of the first module that takes whole numbers was given."""
    first = ""
    for entry in dump.entries.values():
        if entry.parsed is None or entry.parsed.direction != FORWARD:
            continue
        for item in entry.items:
            if item.state == "input" and item.kind == "tensor" and "int" in (item.dtype or "").lower():
                first = first or entry.parsed.name
                if entry.parsed.name == first:
                    yield str((item.shape, item.maximum, item.minimum, item.mean, item.norm))
                break


def _modules(dump: Dump) -> str:
    parsed = (entry.parsed for entry in dump.entries.values())
    return listed(dict.fromkeys(each.name for each in parsed if each is not None and each.is_module), 8)
