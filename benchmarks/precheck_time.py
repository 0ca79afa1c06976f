"""Time of ``msprobe acc_check``, of another tool's beside it in turns, and the calls whose verdicts differ.

    python benchmarks/precheck_time.py                                   ours, with one worker and with two
    python benchmarks/precheck_time.py --peer /path/to/bin/msprobe       mindstudio-probe in the same minutes
    python benchmarks/precheck_time.py --peer … --verdicts verdicts.csv  and each differing verdict as a row

The dump holds the examples of ``torture.api_sweep`` for ``mindspore.mint``, ``--copies`` times: calls of one API with
statistics alone. See README.md beside this file.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

#: What another tool judges of MindSpore: the prefixes of its names.
_PREFIXES = ("Mint.", "MintFunctional.")
_COLUMNS = ("Forward Test Success", "Backward Test Success")
Verdict = tuple[str, str]


def _write_dump(root: Path, copies: int) -> Path:
    """The sweep's calls of mint, renumbered ``copies`` times; the folder of the dump."""
    sweep = root / "sweep"
    subprocess.run(
        [sys.executable, "-m", "torture.api_sweep.as_dump", str(sweep)],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=Path(__file__).resolve().parents[1],
    )  # fmt: skip
    dump = json.loads((sweep / "dump.json").read_text())
    numbers: Counter[str] = Counter()
    data = {}
    for _ in range(copies):
        for name, entry in dump["data"].items():
            if name.startswith(_PREFIXES):
                api = name.removesuffix(".forward").rpartition(".")[0]
                data[f"{api}.{numbers[api]}.forward"] = entry
                numbers[api] += 1
    folder = root / "mint"
    folder.mkdir()
    (folder / "dump.json").write_text(json.dumps(dump | {"data": data}))
    return folder


def _run(command: list[str], dump: Path, output: Path) -> tuple[float, float]:
    """Wall and CPU seconds of one check; its tables stay in ``output``."""
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir()
    began = time.perf_counter()
    process = subprocess.Popen(
        [*command, "-api_info", str(dump / "dump.json"), "-o", str(output)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=output,
    )  # fmt: skip
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    if status:
        raise SystemExit(f"{' '.join(command)}: ended with {os.waitstatus_to_exitcode(status)}")
    return wall, usage.ru_utime + usage.ru_stime


def _verdicts(output: Path) -> dict[str, Verdict]:
    """API → what the table of results says of both directions."""
    (table,) = output.glob("accuracy_checking_result_*.csv")
    with table.open(encoding="utf-8-sig", newline="") as opened:
        return {row["API Name"]: (row[_COLUMNS[0]], row[_COLUMNS[1]]) for row in csv.DictReader(opened)}


def _differing(ours: Mapping[str, Verdict], theirs: Mapping[str, Verdict]) -> list[tuple[str, str, str]]:
    """Calls that the two judge differently: the name, and each one's verdict of forward."""
    none = ("no row", "")
    return [
        (name, ours.get(name, none)[0], theirs.get(name, none)[0])
        for name in {**ours, **theirs}
        if ours.get(name, none)[0] != theirs.get(name, none)[0]
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--copies", type=int, default=10, help="how often each example is in the dump")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each tool, in turns; figures are medians")
    parser.add_argument("--peer", type=Path, metavar="FILE", help="the command msprobe of mindstudio-probe 26.x")
    parser.add_argument("--verdicts", type=Path, metavar="FILE", help="write the differing verdicts of forward")
    options = parser.parse_args()
    # Set, every start compiles the package anew, and it is the compiler that is timed.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    ours = [sys.executable, "-m", "msprobe_ms", "acc_check", "--no-html"]
    tools = {"ours, 1 worker": [*ours, "-n", "1"], "ours, 2 workers": [*ours, "-n", "2"]}
    if options.peer:
        tools["peer"] = [str(options.peer), "acc_check"]
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        dump = _write_dump(root, options.copies)
        outputs = {tool: root / f"output{number}" for number, tool in enumerate(tools)}
        runs: dict[str, list[tuple[float, float]]] = {tool: [] for tool in tools}
        for _ in range(options.repeat):
            for tool, command in tools.items():
                runs[tool].append(_run(command, dump, outputs[tool]))
        calls = len(json.loads((dump / "dump.json").read_text())["data"])
        print(f"{calls} calls\n{'tool':16} {'wall s':>7} {'least':>7} {'CPU s':>7} {'calls/s':>8} {'judged':>7}")
        judged = {tool: _verdicts(output) for tool, output in outputs.items()}
        for tool, times in runs.items():
            wall, cpu = (statistics.median(column) for column in zip(*times, strict=True))
            rows = sum(verdict[0] not in ("", "SKIP") for verdict in judged[tool].values())
            print(f"{tool:16} {wall:7.1f} {min(times)[0]:7.1f} {cpu:7.1f} {calls / wall:8.0f} {rows:7}")
        if options.peer:
            _tell_verdicts(_differing(judged["ours, 1 worker"], judged["peer"]), options.verdicts)


def _tell_verdicts(differing: list[tuple[str, str, str]], file: Path | None) -> None:
    for (mine, theirs), count in Counter(row[1:] for row in differing).most_common():
        apis = sorted({row[0].split(".")[1] for row in differing if row[1:] == (mine, theirs)})
        print(f"ours {mine or 'blank'}, peer {theirs or 'blank'}: {count} calls of {len(apis)} APIs: {', '.join(apis)}")
    if file is not None:
        with file.open("w", newline="", encoding="utf-8") as opened:
            csv.writer(opened).writerows([("API Name", "ours", "peer"), *differing])


if __name__ == "__main__":
    main()
