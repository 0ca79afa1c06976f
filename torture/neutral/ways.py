"""How a training is recorded, what of it is compared, and the loop that both frameworks share."""

from __future__ import annotations

import csv
import hashlib
import json
import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import numpy as np

from msprobe_ms.support.errors import UsageError
from torture.harness import Outcome
from torture.recordings import write_config

LEVELS = ("L0", "L1", "mix", "L2")

#: What is read → the digest of its bytes.
State = dict[str, str]


class Training(Protocol):
    """One training, with everything in it seeded."""

    net: Any

    def step(self) -> Iterable[tuple[str, Any]]:
        """Train one step; loss, gradients and whatever else it gave, by name."""
        ...

    def state(self) -> Iterable[tuple[str, Any]]:
        """Parameters, buffers, what the optimizers keep, and the framework's generators, by name."""
        ...

    def read(self, value: Any) -> bytes:
        """The bits of a tensor."""
        ...


#: True of every way here: the bare training ran compiled code first.
_SAID = "kernels inside of compiled functions are not recorded"


def run(training: Training, steps: int, debugger: Any = None) -> State:
    """Train, with ``debugger`` recording every step; the digest of everything compared."""
    seen: State = {}
    for number in range(steps):
        if debugger is not None:
            debugger.start(training.net)
        values = list(training.step())
        if debugger is not None:
            debugger.stop()
            debugger.step()
        seen |= {f"step {number}: {name}": _digest(training, value) for name, value in values}
    seen |= {name: _digest(training, value) for name, value in training.state()}
    seen["state of random"] = _digest(training, repr(random.getstate()))
    seen["state of numpy.random"] = _digest(training, repr([str(part) for part in np.random.get_state()]))
    return seen


def _digest(training: Training, value: Any) -> str:
    content = value.encode() if isinstance(value, str) else training.read(value)
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def outcomes(
    framework: str,
    net: str,
    ways: Iterable[tuple[str, str]],
    recorded: range,
    make: Callable[[str], Training],
    debugger: Any,
) -> Iterator[Outcome]:
    """Train ``net`` without the tool, twice, and then with the steps ``recorded`` at each level and task of ``ways``.

    ``debugger`` makes one from its configuration. The figures are how many ``values`` are compared, how many
    ``entries`` recorded, and why the way is ``refused``; the problems are the values that differ.
    """  # fmt: skip
    steps = recorded.stop
    bare = run(make(net), steps)
    again = run(make(net), steps)
    if unsteady := _differences(bare, again):
        raise SystemExit(f"{framework} {net} does not repeat itself without the tool: {', '.join(unsteady[:5])}, …")
    for level, task in ways:
        outcome = Outcome(f"{framework} {net} {level} {task}", figures={"values": 0, "entries": 0, "refused": ""})
        with TemporaryDirectory() as folder:
            recording = None
            try:
                config = write_config(Path(folder), task, level=level, step=list(recorded))
                recording = debugger(config_path=str(config))
                state = run(make(net), steps, recording)
            except UsageError as error:
                outcome.figures["refused"] = str(error)
            else:
                logs = sorted(Path(folder).rglob("dump_error_info.log"))
                outcome.problems += _differences(bare, state)
                said = [line for path in logs for line in path.read_text().splitlines() if _SAID not in line]
                outcome.problems += [f"dump_error_info.log: {line[:300]}" for line in said[:1]]
                outcome.problems += _found(Path(folder))
                outcome.figures |= {"values": len(bare), "entries": _entries(Path(folder))}
            finally:
                if recording is not None:
                    recording.retire()
        yield outcome


def _differences(one: State, other: State) -> list[str]:
    return [name for name in one | other if one.get(name) != other.get(name)]


def _entries(folder: Path) -> int:
    """How many entries all dumps in ``folder`` hold, or calls were checked: a way that records nothing would be neutral
    for nothing."""
    recorded = sum(len(json.loads(path.read_bytes())["data"]) for path in folder.rglob("dump.json"))
    checked = (int(row["checked"]) for path in folder.rglob("free_benchmark_summary.csv") for row in _rows(path))
    return recorded + sum(checked)


def _found(folder: Path) -> list[str]:
    """What a check found in a net that is healthy."""
    rows = [row for path in folder.rglob("free_benchmark.csv") for row in _rows(path)]
    return [f"{row['api_name']} {row['kind']} {row['max_rel']} {row['call']}" for row in rows]


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as opened:
        return list(csv.DictReader(opened))
