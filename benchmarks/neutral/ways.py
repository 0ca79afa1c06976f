"""How a training is recorded, what of it is compared, and the loop that both frameworks share."""

from __future__ import annotations

import hashlib
import json
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import numpy as np

from msprobe_ms.support.errors import UsageError

#: What a way is called → keys of the configuration, and those of the task's section.
TASKS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "statistics": ({"task": "statistics"}, {}),
    "md5": ({"task": "statistics"}, {"summary_mode": "md5"}),
    "tensor": ({"task": "tensor"}, {}),
    "async": ({"task": "tensor", "async_dump": True}, {}),
    "structure": ({"task": "structure"}, {}),
    "overflow": ({"task": "overflow_check"}, {"overflow_nums": -1}),
}

LEVELS = ("L0", "L1", "mix", "L2")

#: What is read → the digest of its bytes.
State = dict[str, str]


@dataclass(frozen=True)
class Way:
    """A level and the name of one of the `TASKS`."""

    level: str
    task: str

    def config(self, folder: Path, recorded: Iterable[int]) -> Path:
        """A configuration file that records these steps into ``folder``."""
        keys, section = TASKS[self.task]
        content = {"level": self.level, "dump_path": str(folder / "dump"), "step": list(recorded), **keys}
        content[keys["task"]] = section
        path = folder / "config.json"
        path.write_text(json.dumps(content), encoding="utf-8")
        return path


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


@dataclass(frozen=True)
class Outcome:
    """``compared`` values; ``differences`` names those that differ; ``refused`` says why this way does not record."""

    framework: str
    net: str
    way: Way
    compared: int = 0
    entries: int = 0
    differences: tuple[str, ...] = ()
    refused: str = ""

    def text(self) -> str:
        return json.dumps([self.framework, self.net, self.way.level, self.way.task, self.compared, self.entries,
                           list(self.differences), self.refused])  # fmt: skip

    @classmethod
    def parse(cls, text: str) -> Outcome:
        framework, net, level, task, compared, entries, differences, refused = json.loads(text)
        return cls(framework, net, Way(level, task), compared, entries, tuple(differences), refused)


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
    ways: Iterable[Way],
    steps: int,
    every: int,
    make: Callable[[str], Training],
    debugger: Any,
) -> Iterator[Outcome]:
    """Train ``net`` without the tool, twice, and then in every way, with every n-th step recorded.

    ``debugger`` makes one from its configuration.
    """
    bare = run(make(net), steps)
    again = run(make(net), steps)
    if unsteady := _differences(bare, again):
        raise SystemExit(f"{framework} {net} does not repeat itself without the tool: {', '.join(unsteady[:5])}, …")
    for way in ways:
        with TemporaryDirectory() as folder:
            recording = None
            try:
                recording = debugger(config_path=str(way.config(Path(folder), range(0, steps, every))))
                state = run(make(net), steps, recording)
            except UsageError as error:
                yield Outcome(framework, net, way, refused=str(error))
                continue
            finally:
                if recording is not None:
                    recording.retire()
            logs = sorted(Path(folder).rglob("dump_error_info.log"))
            differences = _differences(bare, state) + [f"{path.name}: {path.read_text()[:300]}" for path in logs[:1]]
            yield Outcome(framework, net, way, len(bare), _entries(Path(folder)), tuple(differences))
            rmtree(folder, ignore_errors=True)


def _differences(one: State, other: State) -> list[str]:
    return [name for name in one | other if one.get(name) != other.get(name)]


def _entries(folder: Path) -> int:
    """How many entries all dumps in ``folder`` hold: a way that records nothing would be neutral for nothing."""
    return sum(len(json.loads(path.read_bytes())["data"]) for path in folder.rglob("dump.json"))


def main(framework: str, make: Callable[[str], Training], debugger: Any) -> None:
    """Print an outcome a line.

    Arguments are the number of steps, which n-th is recorded, how kernels run, and then ``NET:LEVEL:TASK`` each.
    """
    steps, every = int(sys.argv[1]), int(sys.argv[2])
    ways: dict[str, list[Way]] = {}
    for text in sys.argv[4:]:
        net, level, task = text.split(":")
        ways.setdefault(net, []).append(Way(level, task))
    for net, chosen in ways.items():
        for outcome in outcomes(framework, net, chosen, steps, every, make, debugger):
            print(outcome.text(), flush=True)
