"""``python -m torture.api_sweep``: see torture/README.md.

One process checks API after API; where one ends it, or does not return, another goes on.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import select
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from msprobe_ms.dump.dialects import PRIMITIVE
from msprobe_ms.frameworks.mindspore.known_differences import known_difference
from msprobe_ms.frameworks.pytorch.mindspore_twins import find_twin
from torture.api_sweep.check import (
    AGREES,
    DIFFERS,
    NO_EXAMPLE,
    NO_GRADIENT,
    NO_KERNEL,
    NO_TWIN,
    NOT_FOUND,
    NOTHING,
    RAISES,
    TWIN_RAISES,
    Found,
    check,
    run_alone,
    runner_of,
)

ROOT = Path(__file__).parents[2]
FRAMEWORKS = ROOT / "msprobe_ms" / "frameworks"
#: Namespaces of the APIs that recording knows, and the prefixes of their entries.
PREFIXES = {
    "mindspore": {
        "mindspore.ops": "Functional",
        "mindspore.ops.functional": "Functional",
        "mindspore.Tensor": "Tensor",
        "mindspore.mint": "Mint",
        "mindspore.mint.nn.functional": "MintFunctional",
    },
    "pytorch": {"torch": "Torch", "torch.nn.functional": "Functional", "torch.Tensor": "Tensor", "torch._VF": "VF"},
}
#: Seconds after which an API is held not to return, and a worker not to start: that takes minutes on a busy machine.
PATIENCE, STARTS_WITHIN = 60, 900
#: What a worker says once it has imported them.
_READY = b"ready\n"
CRASHED = "crashed"

#: From bad to good: an API is told by its worst example.
_ORDER = (
    CRASHED, NOT_FOUND, DIFFERS, TWIN_RAISES, RAISES, NO_KERNEL, NO_GRADIENT, AGREES, NOTHING, NO_EXAMPLE, NO_TWIN,
)  # fmt: skip
#: What speaks against MindSpore, or against a twin.
FAULTS = (CRASHED, NOT_FOUND, DIFFERS, TWIN_RAISES, RAISES)


def names(framework: str) -> list[tuple[str, str]]:
    """Return prefix and name of every API of a framework that recording knows, each once."""
    listed = yaml.safe_load((FRAMEWORKS / framework / "apis.yaml").read_text(encoding="utf-8"))
    found = dict.fromkeys((prefix, api) for path, prefix in PREFIXES[framework].items() for api in listed[path])
    return [*found, *(_primitives() if framework == "mindspore" else ())]


def _primitives() -> Iterator[tuple[str, str]]:
    """Primitives that can be made without arguments, and have twins."""
    from mindspore import ops

    for name, value in sorted(vars(ops).items()):
        api = f"{name}.{name}"
        is_primitive = isinstance(value, type) and issubclass(value, ops.Primitive)
        if is_primitive and find_twin(PRIMITIVE, api) and runner_of("mindspore").find(PRIMITIVE, api):
            yield PRIMITIVE, api


def sweep(framework: str, apis: Sequence[str]) -> Iterator[tuple[str, list[Found]]]:
    """Yield what was found of each API, ``Prefix.name``."""
    waiting = list(apis)
    while waiting:
        command = [sys.executable, "-m", "torture.api_sweep", framework, "--worker"]
        # Without a buffer, in which a line could wait that `select` does not see.
        worker = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        assert worker.stdin is not None and worker.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            worker.stdin.write("\n".join(waiting).encode())
            worker.stdin.close()
        patience = STARTS_WITHIN
        while waiting:
            ready, _, _ = select.select([worker.stdout], [], [], patience)
            line = worker.stdout.readline() if ready else b""
            if not line:
                yield waiting.pop(0), [Found(CRASHED, detail="" if ready else f"not back after {patience} s")]
                break
            if line == _READY:
                patience = PATIENCE
            if line.startswith(b'{"api"'):  # frameworks print, too
                told = json.loads(line)
                waiting.remove(told["api"])
                yield told["api"], [Found(*each) for each in told["found"]]
        worker.kill()
        worker.wait()


def _work(framework: str) -> None:
    run = check if framework == "mindspore" else run_alone
    for each in dict.fromkeys((framework, "pytorch")):
        runner_of(each)
    print(_READY.decode(), end="", flush=True)
    for line in sys.stdin.read().split():
        prefix, _, api = line.partition(".")
        print(json.dumps({"api": line, "found": run(prefix, api)}), flush=True)


def worst(found: Sequence[Found]) -> Found:
    """Return the worst of what the examples of one API showed."""
    return min(found, key=lambda each: (_ORDER.index(each.forward), _ORDER.index(each.backward)))


def is_known(name: str, told: Found) -> bool:
    """Whether MindSpore is known to be wrong where something was found to be."""
    known = known_difference(*name.split(".", 1))
    direction = "forward" if told.forward in FAULTS else "backward"
    return known is not None and known.direction in (direction, "both")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m torture.api_sweep")
    parser.add_argument("framework", choices=PREFIXES, nargs="?", default="mindspore")
    parser.add_argument("--apis", nargs="*", help="Prefix.name of the APIs to check; all if left out")
    parser.add_argument("--json", type=Path, help="write what was found to this file")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        _work(options.framework)
        return 0
    counts: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    results, unknown, gone = {}, 0, []
    for name, found in sweep(options.framework, options.apis or [".".join(each) for each in names(options.framework)]):
        results[name] = [list(each) for each in found]
        told = worst(found)
        counts[0][told.forward] += 1
        counts[1][told.backward] += 1
        of_mindspore = options.framework == "mindspore"
        if {told.forward, told.backward} & {*FAULTS}:
            known = of_mindspore and is_known(name, told)
            unknown += not known
            print(f"{name}: {told.forward} / {told.backward}{' (known)' if known else ''} {told.detail}")
        elif of_mindspore and known_difference(*name.split(".", 1)) is not None:
            gone.append(name)
    print("forward: ", dict(counts[0].most_common()))
    print("backward:", dict(counts[1].most_common()))
    if gone:
        print("known differences that are none any more:", *gone)
    if options.json:
        options.json.write_text(json.dumps(results, indent=0))
    return 1 if unknown or gone else 0


if __name__ == "__main__":
    sys.exit(main())
