"""What a training left, beside what it told: lost, half or wrong?

Reads with json and numpy alone, and with PyTorch its own files; ``msprobe recover`` is the only part of the tool.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from msprobe_ms.cli.main import main as msprobe
from msprobe_ms.dump.reading.reader import read_dump
from torture.kills.plans import ABRUPT, STEPS, WAYS, Plan
from torture.kills.runs import Run
from torture.kills.training import DUMP

_JOURNAL, _LOG, _TENSORS = "dump.journal", "dump_error_info.log", "dump_tensor_data"
#: How the tool's own errors end in the log; notes do not. That a call was interrupted is no error.
_ERROR = re.compile(r"^(?!.*: (KeyboardInterrupt|SystemExit): ).*\((.+:\d+|unknown place)\)$")


@dataclass
class Findings:
    """``problems`` is what must not be; ``counts`` says how much was looked at."""

    problems: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


@dataclass
class _Step:
    """A step's dump, of graphs and what is beside them together."""

    data: dict[str, Any] = field(default_factory=dict)
    construct: dict[str, str | None] = field(default_factory=dict)
    sites: set[str] = field(default_factory=set)
    #: Entry → its folder.
    folders: dict[str, Path] = field(default_factory=dict)


class Whole:
    """What the same training records that nobody ends: the entries of its steps and whose they are."""

    def __init__(self, run: Run) -> None:
        self.told = run.told
        self.files: int = run.told[-1]["files"]
        steps = [_step(run.folder / DUMP, number, Findings()) for number in range(STEPS)]
        self.data = [step.data for step in steps]
        self.construct = [step.construct for step in steps]


def inspect(run: Run, whole: Whole | None, bare: Run | None = None) -> Findings:
    """Compare what is there with what was told. ``whole`` is None for the training nobody ends itself."""
    found = Findings()
    _status(run, bare, found)
    dump = run.folder / DUMP
    journals = sorted(dump.rglob(_JOURNAL))
    stopped = _steps(run, "stopped") - _steps(run, "over")
    for file in dump.rglob("*.json"):
        _json(file, found)
    for number in stopped | _steps(run, "over"):  # before anything is recovered
        _told(run, number, _step(dump, number, found), whole, found)
    if journals or (run.plan.setting.mode, run.plan.setting.level) == ("graph", "L2"):
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            status = msprobe(["recover", str(dump)])
        if status and journals:
            found.problems.append(f"msprobe recover ends with status {status}")
    if _ends_in_order(run):
        # A step that was not opened yet has nothing in it.
        kept = [path for path in journals if _json(path.with_name("dump.json"), found).get("data")]
        found.problems += [f"{path} is left behind" for path in (*kept, *dump.rglob(".*.tmp"))]
    found.counts["temporary files"] += len(list(dump.rglob(".*.tmp")))
    found.counts["journals"] += len(journals)
    for number in range(STEPS):
        step = _step(dump, number, found)
        _told(run, number, step, whole, found)
        _values(run, number, step, whole, found)
        if number in _steps(run, "over") and whole is not None and set(step.data) != set(whole.data[number]):
            odd = sorted(set(step.data) ^ set(whole.data[number]))
            found.problems.append(f"step {number} was over: {odd[:4]} differ from a training that nobody ended")
        found.counts["entries"] += len(step.data)
        found.counts["steps"] += bool(step.data)
    _logs(run, found)
    return found


def _steps(run: Run, kind: str) -> set[int]:
    return {line["step"] for line in run.told if line["kind"] == kind}


def _status(run: Run, bare: Run | None, found: Findings) -> None:
    expected = WAYS.get(run.plan.way, 0)
    if run.plan.way == "interrupt" and run.plan.setting.mode != "dynamic" and run.status == -15:
        expected = -15  # MindSpore's own: it turns Ctrl-C into SIGTERM while a graph runs or is compiled
    ended_itself = run.told[-1:] and run.told[-1]["kind"] == "end" and run.status == 0
    if run.status == -14:
        found.problems.append("hangs")
    elif bare is not None and (run.status, run.raised) != (bare.status, bare.raised):
        found.problems.append(f"ends with {run.status} {run.raised!r}, without recording {bare.status} {bare.raised!r}")
    elif run.plan.way == "memory":
        found.counts[f"memory: status {run.status}"] += 1
    elif expected is not None and run.status != expected and not ended_itself:
        found.problems.append(f"ends with status {run.status} instead of {expected}")
    if run.plan.way != "memory":
        for text in ("Fatal Python error", "Exception ignored", "Segmentation"):
            if text in run.output and (bare is None or text not in bare.output):
                found.problems.append(f"prints {text!r}")


def _ends_in_order(run: Run) -> bool:
    """Whether Python ran on after the end, and nothing stopped the tool from closing its files."""
    closing = bool(run.told) and run.told[-1]["kind"] == "stopped"  # what ``step`` was closing then stays open
    return run.plan.way not in (*ABRUPT, "memory") and run.status != -15 and not closing


def _json(file: Path, found: Findings) -> Any:
    if not file.exists():
        return {}
    try:
        return json.loads(file.read_bytes())
    except ValueError as error:
        found.problems.append(f"{file} is half: {error}")
        return {}


def _step(dump: Path, number: int, found: Findings) -> _Step:
    step = _Step()
    for parent in (dump, dump / "graph", dump / "pynative"):
        for folder in sorted((parent / f"step{number}").glob("*")):
            if folder.name.startswith("earlier"):
                found.problems.append(f"{folder}: nothing was there before")
            name = next((name for name in ("dump.json", "debug.json") if (folder / name).exists()), None)
            if name is None:
                continue
            data = _json(folder / name, found).get("data", {})
            step.data |= data
            step.folders |= dict.fromkeys(data, folder)
            if name == "debug.json":
                continue
            for companion in ("stack.json", "construct.json"):
                if not (folder / companion).exists():
                    found.problems.append(f"{folder} has a dump.json and no {companion}")
                    return step
            step.construct |= _json(folder / "construct.json", found)
            step.sites |= {entry for entries, _ in _json(folder / "stack.json", found).values() for entry in entries}
    return step


# -- lost? -------------------------------------------------------------------------------------------------------------


def _told(run: Run, number: int, step: _Step, whole: Whole | None, found: Findings) -> None:
    """Whatever had finished is there, with its place in the net and in the source."""
    setting, lines = run.plan.setting, [line for line in run.told if line["step"] == number]
    expected = set(_expected(run.plan, lines, whole, number))
    found.counts["told"] += len(expected)
    missing = sorted(expected - set(step.data))
    if missing and not _is_said(run):
        found.problems.append(f"step {number}: {len(missing)} calls that were over are lost: {missing[:4]}")
    for entry in expected & set(step.data):
        assert whole is not None
        if not _alike(step.data[entry], whole.data[number][entry]):
            found.problems.append(f"step {number}: {entry} was over, but is not as in a training that nobody ended")
    if setting.level == "debug":
        return
    calls = (entry for entry in expected & set(step.data) if not entry.endswith(".debug"))  # the loss is none
    there = [entry for entry in calls if ".parameters_grad." not in entry]
    if setting.level != "L1":
        found.problems += [f"step {number}: {entry} has no parent" for entry in there if entry not in step.construct]
    if setting.mode == "dynamic" and setting.level != "L2":
        forward = [entry for entry in there if "forward" in entry and entry not in step.sites]
        found.problems += [f"step {number}: {entry} has no call site" for entry in forward]


def _expected(plan: Plan, lines: Iterable[dict[str, Any]], whole: Whole | None, number: int) -> Iterator[str]:
    """Entries of what the lines tell of."""
    setting = plan.setting
    if whole is None:
        return
    if setting.task == "overflow":
        lines = [line for line in lines if not line.get("finite", True) or line["kind"] not in ("call", "gradient")]
    entries = whole.data[number]
    for line in lines:
        name = line["name"]
        if line["kind"] in ("call", "gradient") and name in entries:
            yield name
        elif line["kind"] in ("call", "gradient") and setting.level == "L2" and setting.mode == "dynamic":
            direction = "forward" if line["kind"] == "call" else "backward"
            for entry, parent in whole.construct[number].items():
                if parent == name and entry.endswith(f".{direction}"):
                    yield entry
        elif line["kind"] == "backward":
            # Level L2 in graphs: MindSpore's files are indexed when the step is over.
            if (setting.mode, setting.level) != ("graph", "L2"):
                yield from entries
        elif line["kind"] == "over":
            yield from entries


def _alike(body: Any, other: Any) -> bool:
    """Whether the same tensors are recorded; graphs that are compiled anew differ in the last bits."""
    leaves, others = list(_leaves(body)), list(_leaves(other))
    return len(leaves) == len(others) and all(
        a["shape"] == b["shape"] and all(_close(a.get(key), b.get(key)) for key in ("Max", "Min", "Norm"))
        for a, b in zip(leaves, others, strict=True)
    )


def _close(a: Any, b: Any) -> bool:
    return str(a) == str(b) or (isinstance(a, float) and isinstance(b, float) and math.isclose(a, b, rel_tol=1e-3))


def _is_said(run: Run) -> bool:
    """Without memory the tool need not record, but has to say so."""
    return run.plan.way == "memory" and any(_errors(log) for log in _log_files(run))


def _errors(log: Path) -> list[str]:
    return [line for line in log.read_text().splitlines() if _ERROR.search(line)]


def _log_files(run: Run) -> list[Path]:
    return list((run.folder / DUMP).rglob(_LOG))


def _logs(run: Run, found: Findings) -> None:
    for log in _log_files(run):
        errors = _errors(log)
        found.counts["errors in logs"] += len(errors)
        if errors and run.plan.way != "memory":
            found.problems.append(f"{log}: {errors[:3]}")


# -- half or wrong? ----------------------------------------------------------------------------------------------------


def _values(run: Run, number: int, step: _Step, whole: Whole | None, found: Findings) -> None:
    told = {line["name"]: line for line in run.told if line["step"] == number and "crc" in line}
    if whole is not None and run.plan.setting.level == "L2":  # the last kernel of a call computes what it returns
        last = {parent: entry for entry, parent in whole.construct[number].items() if entry.endswith(".forward")}
        told = {last[name]: line for name, line in told.items() if name in last}
    missing = []
    for entry, body in step.data.items():
        for leaf in _leaves(body):
            if "data_name" in leaf:
                file = _file(step.folders[entry], leaf["data_name"])
                if not file.exists():
                    missing.append(file)
                    continue
                found.counts["tensor files"] += 1
                _whole_file(file, leaf, found)
        if entry in told:
            given = body if entry.endswith(".debug") else body.get("output")
            output = next(iter(_leaves(given)), None)
            if output is not None:
                found.counts["values"] += 1
                _same(entry, output, told[entry], step.folders[entry], found)
    for folder in {path.parent for path in missing}:
        lost = [path for path in missing if path.parent == folder]
        found.counts["tensors that waited"] += len(lost)
        waited = run.plan.setting.task == "async" and not _ends_in_order(run)
        may_be_lost = waited and number not in _steps(run, "stopped")
        if not may_be_lost and not _is_said(run):
            found.problems.append(f"step {number}: {len(lost)} tensor files are lost: {lost[0].name}")
    for folder in set(step.folders.values()):
        try:
            read_dump(folder)
        except Exception as error:
            found.problems.append(f"{folder} cannot be read: {error!r}")


def _file(folder: Path, data_name: str) -> Path:
    inside = folder / _TENSORS / data_name
    return inside if inside.exists() or "/" not in data_name else folder.parents[1] / "rank_0" / "Net" / data_name


def _leaves(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict) and "shape" in value and "dtype" in value:
        yield value
    elif isinstance(value, (dict, list)):
        for member in value.values() if isinstance(value, dict) else value:
            yield from _leaves(member)


def _array(file: Path) -> np.ndarray | Exception:
    """What is in a tensor file, or what is wrong with it."""
    try:
        if file.suffix == ".npy":
            return np.load(file, allow_pickle=False)
        import torch

        return torch.load(file, weights_only=True).detach().numpy()
    except Exception as error:
        return error


def _whole_file(file: Path, leaf: dict[str, Any], found: Findings) -> None:
    array, figure = _array(file), leaf.get("Max")
    if isinstance(array, Exception):
        if "rank_0" in file.parts and figure is None:  # MindSpore was writing it, and the index says no figure
            found.counts["kernel files that MindSpore left cut off"] += 1
        else:
            found.problems.append(f"{file} is half: {array!r}")
    elif list(array.shape) != list(leaf["shape"]):
        found.problems.append(f"{file} has shape {array.shape}, its record {leaf['shape']}")
    elif array.size and isinstance(figure, float) and math.isfinite(figure) and figure != float(array.max()):
        found.problems.append(f"{file}: maximum {array.max()}, its record {figure}")


def _same(entry: str, leaf: dict[str, Any], line: dict[str, Any], folder: Path, found: Findings) -> None:
    """The record is of the very call that was told."""
    if line["max"] is not None and leaf.get("Max") is not None and leaf["Max"] != line["max"]:
        found.problems.append(f"{entry}: maximum {leaf['Max']} is recorded, {line['max']} was told")
    if "md5" in leaf and leaf["md5"] != line["crc"]:
        found.problems.append(f"{entry}: checksum {leaf['md5']} is recorded, {line['crc']} was told")
    if "data_name" in leaf and (file := _file(folder, leaf["data_name"])).exists():
        array = _array(file)
        if isinstance(array, np.ndarray) and f"{zlib.crc32(np.ascontiguousarray(array).tobytes()):08x}" != line["crc"]:
            found.problems.append(f"{file} holds another tensor than was told")
