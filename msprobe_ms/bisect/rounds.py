"""Record round after round: write both configurations, run both commands, compare, decide; a state that survives."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from msprobe_ms.bisect.decide import REPORT, Decision, Ends, Round, decide, follow
from msprobe_ms.config.load import load_config, read_object
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.files import replacing
from msprobe_ms.support.translation import tr

STATE = "bisect.json"
#: Rounds after which something goes in circles.
_MOST_ROUNDS = 30


@dataclass(frozen=True, slots=True)
class Side:
    """``name`` is target or golden; ``command`` records what ``config`` says."""

    name: str
    config: Path
    command: Sequence[str]


@dataclass(frozen=True, slots=True)
class Told:
    """One round that is over."""

    round: int
    skip: int
    after: str
    until: str
    calls: int
    seconds: float
    bytes: int
    said: str


def bisect(
    sides: tuple[Side, Side], folder: Path, *, skip: int, factor: int, resume: bool, tell: Callable[[str], None]
) -> tuple[Decision, list[Told]]:
    """Narrow down until one call is left; ``tell`` is given a line after each round.

    :raises UsageError: a configuration cannot be used, a command fails, or the folder holds another bisection
    """
    state = _read_state(folder) if resume else {}
    if not resume and (folder / STATE).exists():
        raise UsageError(
            tr(
                "bisect: {folder} holds another bisection; go on with it by --resume, or give another -o",
                folder=folder / STATE,
            )
        )
    asked = _round(state["next"]) if state.get("next") else Round(skip)
    goods = [Ends(*each) for each in state.get("goods", [])]
    told = [Told(**each) for each in state.get("rounds", [])]
    with _written_back(sides):
        for number in range(len(told), _MOST_ROUNDS):
            begun = time.monotonic()
            place = folder / f"round{number}"
            dumps = [_record(side, place / side.name, asked) for side in sides]
            finding = decide(dumps[0], dumps[1], place / REPORT)
            goods.append(asked.after)
            decision = follow(asked, finding, goods, factor)
            size = sum(file.stat().st_size for dump in dumps for file in dump.rglob("*") if file.is_file())
            told.append(
                Told(
                    number, asked.skip, asked.after.target, asked.until.target, finding.calls,
                    round(time.monotonic() - begun, 1), size, decision.said,
                )
            )  # fmt: skip
            _write_state(folder, decision, goods, told)
            what = tr("every {skip}th call", skip=asked.skip) if asked.skip > 1 else tr("every call")
            tell(
                tr(
                    "round {number}: {what}, {calls} compared: {said}",
                    number=number,
                    what=what,
                    calls=finding.calls,
                    said=decision.said,
                )
            )
            if decision.next is None:
                return decision, told
            asked = decision.next
    raise UsageError(
        tr(
            "bisect: no end after {most_rounds} rounds; look at {folder}",
            most_rounds=_MOST_ROUNDS,
            folder=folder / STATE,
        )
    )


def _record(side: Side, dump: Path, asked: Round) -> Path:
    written = read_object(side.config)
    task = written.get("task", "statistics")
    section = {**written.get(task, {}), **asked.section(side.name)}
    with replacing(side.config) as file:
        file.write(json.dumps({**written, "dump_path": str(dump.absolute()), task: section}, indent=4).encode())
    load_config(side.config)  # says what is wrong before anything runs
    status = _run(side)
    if not any(dump.rglob("dump.json")):
        raise UsageError(
            tr(
                "bisect: {command} ended with {status} and recorded nothing in {dump}; it has to read "
                "{config} and record one step",
                command=" ".join(side.command),
                status=status,
                dump=dump,
                config=side.config,
            )
        )
    return dump


def _run(side: Side) -> int:
    try:
        return subprocess.run(list(side.command), check=False).returncode
    except OSError as error:
        raise UsageError(
            tr(
                "bisect: {command}: cannot be run: {strerror}",
                command=side.command[0],
                strerror=error.strerror or error,
            )
        ) from None


@contextmanager
def _written_back(sides: Sequence[Side]) -> Iterator[None]:
    """Leave the configurations as they were."""
    before = [side.config.read_bytes() for side in sides]
    try:
        yield
    finally:
        for side, content in zip(sides, before, strict=True):
            with replacing(side.config) as file:
                file.write(content)


def _write_state(folder: Path, decision: Decision, goods: Sequence[Ends], told: Sequence[Told]) -> None:
    state = {
        "next": decision.next and asdict(decision.next),
        "found": decision.found,
        "goods": [[each.target, each.golden] for each in goods],
        "rounds": [asdict(each) for each in told],
    }
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / STATE) as file:
        file.write(json.dumps(state, indent=1).encode())


def _read_state(folder: Path) -> dict[str, Any]:
    try:
        state = json.loads((folder / STATE).read_bytes())
        if not isinstance(state, dict) or (state["rounds"] and not state["next"]):
            raise UsageError(
                tr(
                    "bisect: {folder}: this bisection is over: {state}",
                    folder=folder / STATE,
                    state=state["rounds"][-1]["said"],
                )
            )
        return state
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(
            tr("bisect: {folder}: cannot be gone on with: {error}", folder=folder / STATE, error=error)
        ) from None


def _round(written: dict[str, Any]) -> Round:
    return Round(written["skip"], Ends(**written["after"]), Ends(**written["until"]), written.get("whole", 0))
