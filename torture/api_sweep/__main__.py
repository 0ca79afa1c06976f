"""``python -m torture.api_sweep``: see torture/README.md. One process checks API after API; where it ends, another goes on."""

from __future__ import annotations

import argparse
import json
import select
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from torture.api_sweep.check import AGREES, DIFFERS, NO_EXAMPLE, NO_KERNEL, NO_TWIN, RAISES, TWIN_RAISES, Found, check

ROOT = Path(__file__).parents[2]
APIS = ROOT / "msprobe_ms" / "frameworks" / "mindspore" / "apis.yaml"
PREFIXES = {
    "mindspore.ops": "Functional",
    "mindspore.ops.functional": "Functional",
    "mindspore.Tensor": "Tensor",
    "mindspore.mint": "Mint",
    "mindspore.mint.nn.functional": "MintFunctional",
}
#: Seconds after which an API is held not to return.
PATIENCE = 60

#: From bad to good: an API is told by its worst example.
_ORDER = ("crashed", DIFFERS, TWIN_RAISES, RAISES, NO_KERNEL, "no gradient", AGREES, "-", NO_EXAMPLE, NO_TWIN)


def names() -> list[tuple[str, str]]:
    """Return prefix and name of every API that recording knows of MindSpore, each once."""
    listed = yaml.safe_load(APIS.read_text(encoding="utf-8"))
    found = [(prefix, api) for path, prefix in PREFIXES.items() for api in listed[path]]
    return list(dict.fromkeys(found))


def sweep(apis: Sequence[tuple[str, str]]) -> Iterator[tuple[str, list[Found]]]:
    """Yield what was found of each API; one that ends its process, or does not return, is found as crashed."""
    waiting = [".".join(api) for api in apis]
    while waiting:
        command = [sys.executable, "-m", "torture.api_sweep", "--worker"]
        worker = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert worker.stdin is not None and worker.stdout is not None
        worker.stdin.write("\n".join(waiting))
        worker.stdin.close()
        while waiting:
            ready, _, _ = select.select([worker.stdout], [], [], PATIENCE)
            line = worker.stdout.readline() if ready else ""
            if not line:
                yield waiting.pop(0), [Found("crashed", detail="" if ready else f"not back after {PATIENCE} s")]
                break
            if not line.startswith('{"api"'):
                continue  # the framework prints, too
            told = json.loads(line)
            waiting.remove(told["api"])
            yield told["api"], [Found(*each) for each in told["found"]]
        worker.kill()
        worker.wait()


def _work() -> None:
    for line in sys.stdin.read().split():
        prefix, _, api = line.partition(".")
        print(json.dumps({"api": line, "found": check(prefix, api)}), flush=True)


def worst(found: Sequence[Found]) -> Found:
    """Return the worst of what the examples of one API showed."""
    return min(found, key=lambda each: (_ORDER.index(each.forward), _ORDER.index(each.backward)))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m torture.api_sweep")
    parser.add_argument("--apis", nargs="*", help="Prefix.name of the APIs to check; all if left out")
    parser.add_argument("--json", type=Path, help="write what was found to this file")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        _work()
        return
    chosen = names() if not options.apis else [tuple(name.split(".", 1)) for name in options.apis]
    forward: Counter[str] = Counter()
    backward: Counter[str] = Counter()
    results = {}
    for name, found in sweep(chosen):  # type: ignore[arg-type]
        results[name] = [list(each) for each in found]
        told = worst(found)
        forward[told.forward] += 1
        backward[told.backward] += 1
        if told.forward not in (AGREES, NO_TWIN) or told.backward not in (AGREES, "-"):
            print(f"{name}: {told.forward} / {told.backward} {told.detail}")
    print("forward:", dict(forward.most_common()))
    print("backward:", dict(backward.most_common()))
    if options.json:
        options.json.write_text(json.dumps(results, indent=0))


if __name__ == "__main__":
    main()
