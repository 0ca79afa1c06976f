"""All of what the tool costs, in one table: steps, imports, comparisons; beside mindstudio-probe where it is at hand.

    make bench                                                   the table
    make bench BENCH_ARGS="--sections asked calls"               some sections of it
    make bench BENCH_ARGS="--peer /path/to/bin/python"           with the peer, in the same run
    make bench BENCH_ARGS="--write docs/performance.md"          and into that file, between its marks
    python benchmarks/bench.py --sections checks --peer110 /path/to/bin/python    free_benchmark and grad_probe alone

Each case is a process of its own; of steps, ours and the peer's in turns. Quote ratios, not seconds. See README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
LEVELS, TASKS = ("L0", "L1", "mix"), ("statistics", "md5", "structure", "tensor", "async")
#: Highest wall ratios that are asked for.
LIMITS = {
    ("L0", "statistics"): 1.2, ("L1", "statistics"): 1.5, ("mix", "statistics"): 1.6,
    ("L0", "md5"): 1.3, ("mix", "md5"): 1.8, ("L0", "tensor"): 1.5, ("L0", "structure"): 1.05,
}  # fmt: skip
#: What is asked of a recorded step: a network of `nets.NETS`, how it is run, and the highest wall ratios by case.
CASES = ("L0", "L1", "mix", "L0:tensor", "mix:tensor")
ASKED: dict[str, tuple[str, Sequence[str], Sequence[float]]] = {
    "MindSpore encoder, `launch_blocking`": ("encoder", ["--blocking"], (1.2, 1.5, 1.5, 2.2, 5)),
    "100 × Dense(16), `launch_blocking`": ("dense", ["--blocking"], (1.8, 2.5, 3)),
    "PyTorch encoder": ("torch-encoder", [], (1.25, 1.6, 1.6, 2.2, 5)),
    "MindSpore encoder": ("encoder", [], (0.85, 1, 1.05, 1.2, 3)),
}
#: Cases of checks within the training, and whether mindstudio-probe 1.1.0 can do the same there.
CHECKS = {f"{level}:grad_probe": True for level in ("L0", "L1", "L2")} | {
    f"L1:{mode}{kind}": kind == "_listed" and mode != "to_cpu"
    for mode in ("add_noise", "bit_noise", "no_change", "exchange_value", "to_cpu")
    for kind in ("", "_listed", "_backward")
}
#: What stands around the table in a document.
BEGIN, END = "<!-- begin: make bench -->", "<!-- end: make bench -->"


def _line(command: list[str]) -> dict[str, Any] | None:
    """What the last line of a command's output says; None where the command fails."""
    done = subprocess.run(command, capture_output=True, text=True, cwd=HERE.parent)
    lines = done.stdout.splitlines()
    return json.loads(lines[-1]) if done.returncode == 0 and lines else None


def _step(python: str, case: str, steps: int, *more: str) -> dict[str, Any] | None:
    return _line([python, str(HERE / "step_time.py"), "--cases", case, "--steps", str(steps), *more])


def _ratio(figures: dict[str, Any] | None, kind: str) -> str:
    if figures is None:
        return "fails"
    return f"{figures[f'{kind}_ratio']:.2f} ({figures[f'{kind}_ratio_least']:.2f})"


def steps(options: argparse.Namespace) -> Iterator[str]:
    """Ratios of steps with a tool to steps without, the median (and of the quickest steps)."""
    peer = ["wall, peer", "CPU, peer"] if options.peer else []
    titles = ["level", "task", "wall", "limit", "CPU", "after stop", "stop and export", "dump", *peer]
    yield from _head(titles)
    for level in options.levels:
        for task in options.tasks:
            case, limit = f"{level}:{task}", LIMITS.get((level, task))
            ours = _step(sys.executable, case, options.steps)
            cells = [level, task, _ratio(ours, "wall"), "" if limit is None else f"≤ {limit:.2f}", _ratio(ours, "cpu")]
            if ours is None:
                cells += ["", "", ""]
            else:
                after = f"{ours['wall_ratio_after_stop']:.2f}"
                cells += [after, f"{ours['export_ms']:.0f} ms", f"{ours['megabytes']:.2f} MB"]
            if options.peer and task in options.peer_tasks:
                theirs = _step(str(options.peer), case, options.steps, "--adapter", str(HERE / "peer.py"))
                cells += [_ratio(theirs, "wall"), _ratio(theirs, "cpu")]
            elif options.peer:
                cells += ["", ""]
            yield _row(cells)


def blocking_steps(options: argparse.Namespace) -> Iterator[str]:
    """The same with operators launched synchronously, in steps of both kinds: what recording itself costs."""
    yield from _head(["level", "task", "wall", "limit without it", "CPU", "a step without"])
    for level in options.levels:
        for task in options.tasks:
            ours = _step(sys.executable, f"{level}:{task}", options.steps, "--blocking")
            base = "" if ours is None else f"{ours['base_ms']:.0f} ms"
            limit = LIMITS.get((level, task))
            asked = "" if limit is None else f"≤ {limit:.2f}"
            yield _row([level, task, _ratio(ours, "wall"), asked, _ratio(ours, "cpu"), base])


def asked(options: argparse.Namespace) -> Iterator[str]:
    """What is asked of a recorded step beside what it takes, what no tool can do without, and the peer.

    The rest is what is measured above the floor, of the quickest steps: in all, and for each entry recorded.
    """
    yield from _head(["", "", *(case.replace(":", " ") for case in CASES)])
    for title, (net, more, limits) in ASKED.items():
        cases, run = CASES[: len(limits)], ["--net", net, *more]

        def timed(
            chosen: Sequence[str], *adapter: str, python: str = sys.executable, run: list[str] = run
        ) -> dict[str, dict[str, Any] | None]:
            return {case: _step(python, case, options.steps, *run, *adapter) for case in chosen}

        levels = [case for case in cases if case in options.levels]
        ours, floor = timed(cases), timed(cases, "--adapter", str(HERE / "floor.py"))
        yield _row([title, "asked", *(f"≤ {limit:.2f}" for limit in limits), *[""] * (len(CASES) - len(limits))])
        yield _measured("measured", ours)
        yield _measured("hooks alone", timed(levels, "--adapter", str(HERE / "hooks_only.py")))
        yield _measured("hooks and reading", {case: found for case, found in floor.items() if case in LEVELS})
        if any(case not in LEVELS for case in cases):
            files = {case: found for case, found in floor.items() if case not in LEVELS}
            yield _measured("hooks, reading and writing", files)
        yield _row(["", "the rest", *(_rest(ours.get(case), floor.get(case)) for case in CASES)])
        if options.peer and not net.startswith("torch"):
            peer = timed(cases, "--adapter", str(HERE / "peer.py"), python=str(options.peer))
            yield _measured("peer", peer)


def _measured(name: str, found: dict[str, dict[str, Any] | None]) -> str:
    return _row(["", name, *(_ratio(found[case], "wall") if case in found else "" for case in CASES)])


def _rest(ours: dict[str, Any] | None, floor: dict[str, Any] | None) -> str:
    if ours is None or floor is None or ours["wall_ratio_least"] <= floor["wall_ratio_least"]:
        return ""
    rest = (ours["wall_ratio_least"] - floor["wall_ratio_least"]) * ours["base_least_ms"]
    return f"{rest:.0f} ms, {rest / ours['entries'] * 1e3:.0f} µs an entry"


def checks(options: argparse.Namespace) -> Iterator[str]:
    """Ratios of steps with free_benchmark or grad_probe, operators launched synchronously."""
    peer = ["wall, mindstudio-probe 1.1.0", "CPU, mindstudio-probe 1.1.0"] if options.peer110 else []
    yield from _head(["level", "task", "wall", "CPU", *peer])
    for case, peer_has_it in CHECKS.items():
        ours = _step(sys.executable, case, options.steps, "--blocking")
        cells = [*case.split(":"), _ratio(ours, "wall"), _ratio(ours, "cpu")]
        if options.peer110 and peer_has_it:
            theirs = _step(str(options.peer110), case, options.steps, "--blocking", "--adapter", str(HERE / "peer.py"))
            cells += [_ratio(theirs, "wall"), _ratio(theirs, "cpu")]
        elif options.peer110:
            cells += ["", ""]
        yield _row(cells)


def _quickest(commands: list[list[str]], repeat: int) -> list[float]:
    """The least wall seconds of each command, which run in turns."""
    seconds: list[list[float]] = [[] for _ in commands]
    for _ in range(repeat):
        for command, column in zip(commands, seconds, strict=True):
            began = time.perf_counter()
            subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
            column.append(time.perf_counter() - began)
    return [min(column) for column in seconds]


def _import_seconds(python: str, statement: str, repeat: int) -> float:
    """The median time of an import in a process that has imported MindSpore."""
    code = f"import time, mindspore; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
    runs = [subprocess.run([python, "-c", code], capture_output=True, text=True, check=True) for _ in range(repeat)]
    return statistics.median(float(run.stdout.splitlines()[-1]) for run in runs)


def starts(options: argparse.Namespace) -> Iterator[str]:
    """Seconds until something can be done: imports over those of the framework, and the command line."""
    python, repeat = sys.executable, max(options.repeat, 5)
    ours = _import_seconds(python, "from msprobe_ms import PrecisionDebugger", repeat)
    made = _import_seconds(python, "from msprobe_ms import PrecisionDebugger; PrecisionDebugger()", repeat)
    bare, helped = _quickest([[python, "-c", "pass"], [python, "-m", "msprobe_ms", "-h"]], repeat)
    yield from _head(["", "seconds", "limit"])
    yield _row(["`from msprobe_ms import PrecisionDebugger`, after `import mindspore`", f"{ours:.2f}", "≤ 0.15"])
    yield _row(["the same and the first `PrecisionDebugger()`", f"{made:.2f}", ""])
    yield _row(["`msprobe -h`", f"{helped:.2f}", "≤ 0.15"])
    yield _row(["Python alone", f"{bare:.2f}", ""])
    if options.peer:
        theirs = _import_seconds(str(options.peer), "from msprobe.mindspore import PrecisionDebugger", repeat)
        (help_of_peer,) = _quickest([[str(options.peer.with_name("msprobe")), "-h"]], repeat)
        yield _row(["the peer's import", f"{theirs:.2f}", ""])
        yield _row(["the peer's `msprobe -h`", f"{help_of_peer:.2f}", ""])


def calls(_: argparse.Namespace) -> Iterator[str]:
    """Calls of functions of ours in one training step, and in what begins and ends its recording."""
    networks = ("encoder", "torch-encoder")
    yield from _head(["a step at level mix", "MindSpore encoder", "PyTorch encoder"])
    command = [sys.executable, str(HERE / "step_time.py"), "--calls", "--cases", "mix", "--net"]
    found = [_line([*command, net]) or {} for net in networks]
    for when in found[0]:
        yield _row([when, *(str(each.get(when, "fails")) for each in found)])


def sketches(_: argparse.Namespace) -> Iterator[str]:
    """Microseconds of the statistics of one tensor, without its sketch and with it."""
    yield from _head(["tensor", "elements", "without", "with", "ratio", "asked"])
    done = subprocess.run(
        [sys.executable, str(HERE / "sketch_time.py")], capture_output=True, text=True, cwd=HERE.parent
    )
    for found in map(json.loads, done.stdout.splitlines()):
        without, with_ = found["without"], found["with"]
        asked = "≤ 1.15" if found["kind"] == "float32" and found["size"] >= 1 << 20 else ""
        yield _row(
            [found["kind"], f"{found['size']:,}", f"{without} µs", f"{with_} µs", f"{with_ / without:.2f}", asked]
        )


def comparisons(options: argparse.Namespace) -> Iterator[str]:
    """What ``compare_time.py`` prints."""
    command = [sys.executable, str(HERE / "compare_time.py"), "--repeat", str(options.repeat), "--cases"]
    peer = ["--peer", str(options.peer.with_name("msprobe"))] if options.peer else []
    yield "```"
    # The peer's fuzzy match takes five minutes. Of the lines, the first are the machine and the titles.
    for more, known in ((["csv", "xlsx", "md5", "tensor", *peer], 1), (["no page", "20,000", "200,000", "fuzzy"], 2)):
        done = subprocess.run([*command, *more], capture_output=True, text=True, cwd=HERE.parent)
        yield from done.stdout.splitlines()[known:] or done.stderr.splitlines()
    yield "```"


def _head(titles: list[str]) -> Iterator[str]:
    yield _row(titles)
    yield _row(["---"] * len(titles))


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def machine() -> str:
    """Where the figures were taken."""
    found = (
        re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
        if os.path.exists("/proc/cpuinfo")
        else None
    )
    name = found[1] if found else platform.processor() or platform.machine()
    with_ = ", ".join(f"{package} {metadata.version(package)}" for package in ("mindspore", "torch", "numpy"))
    return f"{date.today()}, {name}, {os.cpu_count()} cores, Python {platform.python_version()}, {with_}"


SECTIONS = {
    "Time of a recorded step relative to an unrecorded one: median (quickest steps)": steps,
    "The same under `mindspore.runtime.launch_blocking()`": blocking_steps,
    "What is asked of a recorded step: wall time relative to an unrecorded one, median (quickest steps)": asked,
    "Checks within the training, under `mindspore.runtime.launch_blocking()`": checks,
    "Calls of functions of msprobe_ms": calls,
    "Starting": starts,
    "Sketches": sketches,
    "Comparing": comparisons,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=10, help="recorded steps of each case")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each comparison and start")
    parser.add_argument("--levels", nargs="+", choices=LEVELS, default=LEVELS)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument(
        "--peer", type=Path, metavar="PYTHON", help="the Python of an environment with mindstudio-probe"
    )
    parser.add_argument(
        "--peer-tasks", nargs="*", choices=TASKS, default=[task for task in TASKS if task != "async"],
        help="those that the peer is timed at; it writes asynchronously only calls that are listed",
    )  # fmt: skip
    parser.add_argument(
        "--peer110", type=Path, metavar="PYTHON", help="the same with mindstudio-probe 1.1.0, for the checks"
    )
    parser.add_argument(
        "--sections", nargs="+", choices=[each.__name__ for each in SECTIONS.values()], help="these sections alone"
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the tables into this document, too")
    options = parser.parse_args()
    if options.sections and options.write:
        parser.error("--write takes all sections")
    # Set, every start compiles the package anew, and it is the compiler that is timed.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    lines: list[str] = []

    def say(line: str) -> None:
        lines.append(line)
        print(line, flush=True)

    say(f"{machine()}.")
    for title, section in SECTIONS.items():
        if options.sections and section.__name__ not in options.sections:
            continue
        say("")
        say(f"## {title}")
        say("")
        for line in section(options):
            say(line)
    if options.write is not None:
        before, _, rest = options.write.read_text(encoding="utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        options.write.write_text(f"{before}{BEGIN}\n{chr(10).join(lines)}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
