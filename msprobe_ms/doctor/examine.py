"""Look at the interpreter, its packages, the frameworks and the disk; each finding says what to do about it."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from enum import Enum
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement

import msprobe_ms
from msprobe_ms.config.values import Rejected, writable_folder
from msprobe_ms.frameworks import FRAMEWORKS
from msprobe_ms.support.translation import tr, tr_list

_NAME = "msprobe-ms"
#: Seconds in which a framework has to be imported: some seconds, on a busy machine a minute.
_LONGEST_IMPORT = 180
#: Free bytes below which tensors may not fit (one step takes the size of all activations and gradients), and below
#: which statistics may not (about 2 kB an entry: a step of a large network takes some tens of megabytes).
_LITTLE_FOR_TENSORS, _LITTLE_FOR_STATISTICS = 10 * 10**9, 10**8
#: Modes of frameworks, as these name them.
_MODES = (tr("dynamic graphs"), tr("compiled graphs"), tr("eager mode"))
#: Extras → what they are for.
_EXTRAS = {
    "dataframe": tr("comparison.frame, a table for notebooks"),
    "cluster": tr("compare --scheduler, many machines"),
    "onnx": tr("export --to onnx"),
    "completion": "msprobe completion",
}


class State(Enum):
    """Whether something works, is not there and need not be, may become too little, or has to be put right."""

    GOOD = "ok"
    ABSENT = "--"
    SCARCE = " ?"
    WRONG = "!!"


class Finding(NamedTuple):
    """One line of the examination; ``advice`` says what to do, "" where nothing is to be done."""

    state: State
    text: str
    advice: str = ""


def examine(dump_path: Path) -> Iterator[Finding]:
    """Yield what is found, as it is found; ``dump_path`` is where dumps are to be written. Changes nothing."""
    yield Finding(
        State.GOOD,
        tr("msprobe_ms {version} in {parent}", version=msprobe_ms.__version__, parent=Path(msprobe_ms.__file__).parent),
    )
    yield _python()
    yield from _packages()
    for package, (name, extra) in FRAMEWORKS.items():
        yield from _framework(package, name, extra)
    folder = _folder(dump_path)
    yield folder
    if folder.state is State.GOOD:
        yield _disk(dump_path)


def _python() -> Finding:
    text = tr(
        "Python {python_version} ({executable}), {system} {machine}",
        python_version=platform.python_version(),
        executable=sys.executable,
        system=platform.system(),
        machine=platform.machine(),
    )
    if sys.version_info >= (3, 13):
        return Finding(
            State.ABSENT,
            tr("{text}: MindSpore has no wheels for it", text=text),
            tr("use 3.10 to 3.12 to record MindSpore"),
        )
    return Finding(State.GOOD, text)


def _packages() -> Iterator[Finding]:
    try:
        required = [Requirement(text) for text in metadata.requires(_NAME) or []]
    except metadata.PackageNotFoundError:
        advice = tr("pip install it, or its dependencies may be missing")
        yield Finding(State.ABSENT, tr("{name} is not installed, it runs from its folder", name=_NAME), advice)
        return
    wrong = [each for each in required if each.marker is None and not _is_met(each)]
    for each in wrong:
        yield Finding(
            State.WRONG,
            tr("{name} {version}", name=each.name, version=_version(each.name) or tr("is missing")),
            tr('pip install "{each}"', each=each),
        )
    if not wrong:
        yield Finding(State.GOOD, tr("every package that it requires is there"))
    for extra, purpose in _EXTRAS.items():
        wanted = [each for each in required if each.marker is not None and each.marker.evaluate({"extra": extra})]
        if wanted and not all(map(_is_met, wanted)):
            yield Finding(
                State.ABSENT,
                tr("{purpose}: not here", purpose=purpose),
                tr('if wanted: pip install "{name}[{extra}]"', name=_NAME, extra=extra),
            )


def _is_met(required: Requirement) -> bool:
    version = _version(required.name)
    return version is not None and required.specifier.contains(version, prereleases=True)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _framework(package: str, name: str, extra: str) -> Iterator[Finding]:
    try:
        there = find_spec(package) is not None
    except (ImportError, ValueError):
        there = False
    if not there:
        yield Finding(
            State.ABSENT,
            tr("{name} is not installed", name=name),
            tr('to record it: pip install "{name}[{extra}]"', name=_NAME, extra=extra),
        )
        return
    if package == "mindspore" and (numpy := _version("numpy") or "").split(".")[0] not in ("", "1"):
        yield Finding(
            State.WRONG, tr("numpy {numpy} beside MindSpore, which needs 1.x", numpy=numpy), tr('pip install "numpy<2"')
        )
    told = _probe(extra)
    if isinstance(told, str):
        again = tr('python -c "import {package}" shows all of it', package=package)
        yield Finding(State.WRONG, tr("{name} cannot be used: {told}", name=name, told=told), again)
        return
    yield Finding(
        State.GOOD, tr("{name} {told} on {other_told}", name=name, told=told["version"], other_told=told["device"])
    )
    for mode, levels in told["modes"].items():
        left_out = [level for level in ("L0", "L1", "mix", "L2", "debug") if level not in levels]
        without = tr("; not {left_out}", left_out=tr_list(left_out)) if left_out else ""
        yield Finding(
            State.GOOD,
            tr(
                "{name}, {mode}: level {levels}{without}",
                name=name,
                mode=tr(mode),
                levels=tr_list(levels),
                without=without,
            ),
        )


def _probe(extra: str) -> dict[str, dict[str, list[str]]] | str:
    """What `msprobe_ms.doctor.probe` says of a framework; else why it cannot be used."""
    command = [sys.executable, "-m", "msprobe_ms.doctor.probe", extra]
    search = os.pathsep.join(filter(None, (str(Path(msprobe_ms.__file__).parents[1]), os.environ.get("PYTHONPATH"))))
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_LONGEST_IMPORT, check=False,
            env={**os.environ, "PYTHONPATH": search},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return tr("it could not be imported within {longest_import} seconds", longest_import=_LONGEST_IMPORT)
    lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
    if done.returncode == 0 and lines:
        answer: dict[str, dict[str, list[str]]] = json.loads(lines[-1])
        return answer
    return lines[-1] if lines else tr("importing it ended with status {returncode}", returncode=done.returncode)


def _folder(dump_path: Path) -> Finding:
    try:
        return Finding(State.GOOD, tr("{writable_folder} can be written", writable_folder=writable_folder(dump_path)))
    except Rejected as rejected:
        ((_, text), *_) = rejected.mistakes
        return Finding(State.WRONG, tr("dump_path {text}", text=text), tr("give another dump_path, or ask for access"))
    except (OSError, ValueError) as error:
        return Finding(
            State.WRONG,
            tr("dump_path {dump_path}: {error}", dump_path=dump_path, error=error),
            tr("give another dump_path"),
        )


def _disk(dump_path: Path) -> Finding:
    path = dump_path.absolute()
    there = next(each for each in (path, *path.parents) if each.exists())
    free = shutil.disk_usage(there).free
    text = tr("{free:.1f} GB free where {dump_path} lies", free=free / 1000000000.0, dump_path=dump_path)
    if free < _LITTLE_FOR_STATISTICS:
        return Finding(State.SCARCE, text, tr("this may be too little for any dump: give another dump_path"))
    if free < _LITTLE_FOR_TENSORS:
        advice = tr(
            "enough for task statistics (about 2 kB for each call); task tensor needs, for each step, the size of all "
            "activations and gradients: record fewer layers with `list`, or give another dump_path"
        )
        return Finding(State.SCARCE, text, advice)
    return Finding(State.GOOD, text)
