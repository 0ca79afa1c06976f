"""Collect what a training runs in: packages, environment variables, settings of its launch files, data and weights.

Nothing is run, and no variable is kept but those that devices, frameworks and libraries read.
"""

from __future__ import annotations

import io
import json
import platform
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from msprobe_ms.dump.model import Dump
from msprobe_ms.dump.names import FORWARD
from msprobe_ms.dump.reading.locate import find_places
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.environment.launch_files import missing_scripts, settings_of
from msprobe_ms.environment.settings import NOT_KEPT, settled, tell_defaults
from msprobe_ms.support.errors import DumpFormatError, UsageError
from msprobe_ms.support.files import open_regular, replacing
from msprobe_ms.support.translation import tr

#: The parts of an environment, as sheets of msprobe's config_check have them.
SECTIONS = ("packages", "environment", "hyperparameters", "random", "dataset", "weights")
#: What a comparison of a collection cannot see, beside its sections: files of which only the defaults of options are
#: known, and scripts that shell scripts start and that were not given.
GAPS = "not_collected"
DEFAULTS, SCRIPTS = "defaults", "scripts"
#: Beginnings of variables that devices, frameworks and numeric libraries read.
_READ = (
    "ASCEND", "ATB", "CUBLAS", "CUDA", "CUDNN", "FLAGS", "GLOO", "HCCL", "LCCL", "LCAL", "MKL", "MS_",
    "MINDSPORE", "NCCL", "NPU", "NVIDIA_TF32", "OMP", "OPENBLAS", "PYTORCH", "TASK_QUEUE", "TORCH", "XLA",
    "RANK_SIZE", "WORLD_SIZE", "COMBINED_ENABLE", "PYTHONHASHSEED", "CLOSE_MATMUL", "GE_", "TF32",
)  # fmt: skip
#: Variables that may hold a secret: their values are not kept.
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
#: Settings that seed something.
_RANDOM = re.compile(r"(^|[._-])(seed|deterministic|shuffle|dropout)", re.IGNORECASE)
#: Bytes of a collection.
_LONGEST_COLLECTION = 256 << 20
_MEMBER = "environment.json"

Collection = dict[str, dict[str, Any]]


def collect(files: Iterable[Path], dump: Path | None, variables: Mapping[str, str]) -> Collection:
    """Collect this interpreter's packages, ``variables``, the settings in launch files, and what a dump holds.

    ``files``: shell scripts, yaml, json and Python scripts; ``dump``: one with statistics at L0 or mix, for data and
    weights.

    :raises UsageError: a file cannot be read
    :raises DumpFormatError: the dump cannot be
    """
    files = list(files)
    found: Collection = {section: {} for section in SECTIONS}
    found["packages"] = dict(_packages())
    found["environment"] = {
        name: NOT_KEPT if _SECRET.search(name) else value
        for name, value in sorted(variables.items())
        if name.startswith(_READ)
    }
    given = {str(file): list(settings_of(file)) for file in files}
    for name, value in settled(given).items():
        found["random" if _RANDOM.search(name) else "hyperparameters"][name] = value
    found[GAPS] = {DEFAULTS: tell_defaults(given), SCRIPTS: missing_scripts(files)}
    if dump is not None:
        for step, each in _steps(dump):
            found["dataset"] |= dict(_data(step, each))
            found["weights"] = found["weights"] or dict(_weights(each))
    return found


def _packages() -> Iterator[tuple[str, str]]:
    yield "python", platform.python_version()
    yield "machine", f"{platform.system()} {platform.machine()}"
    for distribution in metadata.distributions():
        name = distribution.metadata["Name"]
        if name:
            yield name.lower().replace("_", "-"), distribution.version


# -- of a dump ---------------------------------------------------------------------------------------------------------


def _steps(path: Path) -> Iterator[tuple[int, Dump]]:
    """The dump of the first rank at each step."""
    first: dict[int, Path] = {}
    for place, file in find_places(path).items():
        first.setdefault(place.step or 0, file)
    for step, file in sorted(first.items()):
        yield step, read_dump(file, sketches=False)


def _data(step: int, dump: Dump) -> Iterator[tuple[str, Any]]:
    """What the first module of a step takes in: its batch."""
    for entry in dump.entries.values():
        if entry.parsed is not None and entry.parsed.is_module and entry.parsed.direction == FORWARD:
            inputs = [item for item in entry.items if item.state == "input" and item.kind == "tensor"]
            if inputs:
                yield from (
                    (tr("step {step}: input {path}", step=step, path=".".join(item.path)), _figures(item))
                    for item in inputs
                )
                return


def _weights(dump: Dump) -> Iterator[tuple[str, Any]]:
    for entry in dump.entries.values():
        if entry.parsed is not None and entry.parsed.is_module and entry.parsed.index in (0, None):
            for item in entry.items:
                if item.state == "parameters":
                    yield ".".join(filter(None, (entry.parsed.name, *item.path))), _figures(item)


def _figures(item: Any) -> dict[str, Any]:
    figures = {"shape": list(item.shape or ()), "md5": item.md5}
    return {**figures, **{name: getattr(item, name) for name in ("maximum", "minimum", "mean", "norm")}}


# -- files -------------------------------------------------------------------------------------------------------------


def write_collection(collection: Collection, path: Path) -> None:
    """Write a collection: a zip where the name ends so, else json.

    :raises UsageError: it cannot be written
    """
    text = json.dumps(collection, indent=1, default=str).encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            if path.suffix != ".zip":
                file.write(text)
            else:
                with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                    archive.writestr(_MEMBER, text)
    except OSError as error:
        raise UsageError(
            tr("{path}: cannot be written: {strerror}", path=path, strerror=error.strerror or error)
        ) from None


def read_collection(path: Path) -> Collection:
    """Read what `write_collection` wrote.

    :raises UsageError: there is no such file
    :raises DumpFormatError: it is damaged, or something else
    """
    if path.is_dir():
        raise UsageError(
            tr(
                "{path}: is a folder; accepted is a collection, the .zip or .json that msprobe config_check -d -o FILE "
                "writes",
                path=path,
            )
        )
    try:
        content = json.loads(_content(path))
    except OSError as error:
        raise UsageError(
            tr("{path}: cannot be read: {strerror}", path=path, strerror=error.strerror or error)
        ) from None
    except (ValueError, RecursionError, KeyError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise DumpFormatError(tr("{path}: is no collection of config_check: {error}", path=path, error=error)) from None
    if not isinstance(content, dict) or not all(isinstance(content.get(each), dict) for each in SECTIONS):
        raise DumpFormatError(
            tr("{path}: is no collection of config_check; make one with msprobe config_check -d -o FILE", path=path)
        )
    gaps = content.get(GAPS)  # which older releases did not write
    return {section: content[section] for section in SECTIONS} | {GAPS: gaps if isinstance(gaps, dict) else {}}


def _content(path: Path) -> bytes:
    with open_regular(path) as opened:
        raw = opened.read(_LONGEST_COLLECTION + 1)
    if len(raw) <= _LONGEST_COLLECTION and zipfile.is_zipfile(io.BytesIO(raw)):
        with zipfile.ZipFile(io.BytesIO(raw)) as archive, archive.open(_MEMBER) as member:
            raw = member.read(_LONGEST_COLLECTION + 1)
    if len(raw) > _LONGEST_COLLECTION:
        raise ValueError(tr("it is larger than {longest_collection} MiB", longest_collection=_LONGEST_COLLECTION >> 20))
    return raw
