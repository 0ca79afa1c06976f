"""How torture tools run: a process for each case, an outcome for whatever became of it, an exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from torture.harness import ROOT, apart, environment

#: A tool of three cases: one passes, one does not, one ends its process.
_TOOL = """
import os, sys
from torture.harness import Outcome, Tool, main

class Small(Tool):
    module = "small"

    @staticmethod
    def add_options(parser):
        parser.add_argument("--cases", nargs="+", default=["good", "bad", "dead"])

    def outcomes(self):
        for case in self.options.cases:
            yield from self.apart(case)

    def run(self, case):
        print("a framework's own line")
        yield Outcome(case, ["is bad"] * (case != "good"), {"folder": os.getcwd()})
        if case == "dead":
            sys.exit("what it died of")

if __name__ == "__main__":
    sys.exit(main(Small))
"""


def test_whatever_becomes_of_a_case_is_an_outcome(tmp_path: Path) -> None:
    (tmp_path / "small.py").write_text(_TOOL)
    results = tmp_path / "results.json"
    command = [sys.executable, "-m", "small", "--json", str(results)]
    done = subprocess.run(command, cwd=tmp_path, env=_environment(tmp_path), capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines() == [
        "bad: is bad", "dead: is bad", "dead: exit code 1: what it died of", "", "4 cases, 3 of them with problems",
    ]  # fmt: skip
    outcomes = json.loads(results.read_text())
    assert [(each["case"], each["problems"]) for each in outcomes] == [
        ("good", []), ("bad", ["is bad"]), ("dead", ["is bad"]), ("dead", ["exit code 1: what it died of\n"]),
    ]  # fmt: skip
    folders = {each["folder"] for each in outcomes[:3]}
    assert len(folders) == 3, "each has a working directory of its own"
    assert not any(map(os.path.exists, folders))


def test_a_tool_whose_cases_pass_ends_with_zero(tmp_path: Path) -> None:
    (tmp_path / "small.py").write_text(_TOOL)
    command = [sys.executable, "-m", "small", "--cases", "good"]
    done = subprocess.run(command, cwd=tmp_path, env=_environment(tmp_path), capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "1 cases, 0 of them with problems\n")


def test_a_tool_that_is_not_there_is_an_outcome() -> None:
    (outcome,) = apart("torture.not_there", "any", [])
    assert outcome.case == "any"
    assert "No module named torture.not_there" in outcome.problems[0]


def _environment(folder: Path) -> dict[str, str]:
    return {**environment(), "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
