"""Ranks send calls to a host for minutes: over TLS, and through a shared folder that is too small.

    python -m torture.online                             ten minutes each
    python -m torture.online --minutes 3 --ranks 4 --cases tls

The host is killed and begun again five times; trainings and the processes that send are killed, and trainings begun
anew. In the end each call that was recorded has the row that a dump of it has, or a word that it did not come.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from msprobe_ms.remote.addresses import Address
from msprobe_ms.remote.certificates import make_certificates
from torture.harness import Outcome, Tool, environment, main
from torture.online.verdicts import RankVerdict, expected_rows, write_variants

_KILLS = 5
#: Its columns do not depend on the names of calls, and so not on which of them has which values.
_PROFILE = "v110"
#: Bytes of the file system of the shared folder.
_SMALL = "2m"


class Online(Tool):
    module = "torture.online"

    @staticmethod
    def add_options(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--minutes", type=float, default=10.0, help="how long ranks train in each case")
        parser.add_argument("--ranks", type=int, default=8)
        parser.add_argument("--pace", type=float, default=1.0, help="seconds from one step of a rank to the next")
        parser.add_argument("--port", type=int, default=59218)
        parser.add_argument("--cases", nargs="+", default=["tls", "folder"], choices=["tls", "folder"])

    def outcomes(self) -> Iterator[Outcome]:
        for case in self.options.cases:
            mounts = case == "folder" and shutil.which("unshare") is not None
            yield from self.apart(case, before=("unshare", "-rm") if mounts else ())

    def run(self, case: str) -> Iterator[Outcome]:
        yield Run(case, self.options).outcome()

    def lines(self, outcome: Outcome) -> Iterator[str]:
        yield f"{outcome.case}: {json.dumps(outcome.figures)}"
        yield from super().lines(outcome)


class Run:
    """One case, in the working folder."""

    def __init__(self, case: str, options: argparse.Namespace) -> None:
        self._case, self._options = case, options
        self._address = self._tls() if case == "tls" else self._folder()
        self._random = random.Random(case)
        self._log = open("host.log", "ab")  # noqa: SIM115 (it lasts as long as this)
        self._host = self._begin_host()
        self._trainings: dict[int, tuple[int, subprocess.Popen[bytes]]] = {}
        self._killed: Counter[str] = Counter()

    def _tls(self) -> Address:
        make_certificates(Path("certificates"), ["localhost"])
        return Address("", "localhost", self._options.port, str(Path("certificates").absolute()))

    @staticmethod
    def _folder() -> Address:
        shared = Path("shared").absolute()
        shared.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_SMALL}", "tmpfs", str(shared)], check=False)
        return Address(str(shared))

    def _begin_host(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "msprobe_ms", "acc_check", "--listen", str(self._address), "-o", "tables",
                   "--ranks", f"0-{self._options.ranks - 1}", "--idle", "90", "--disk", "64",
                   "--profile", _PROFILE]  # fmt: skip
        command += ["--tls", self._address.tls] if self._address.tls else []
        return subprocess.Popen(command, env=environment(), stdout=self._log, stderr=self._log)

    def _begin_training(self, rank: int, training: int, seconds: float) -> None:
        address, pace = json.dumps(asdict(self._address)), str(self._options.pace)
        command = [sys.executable, "-m", "torture.online.rank", address, str(rank), str(training), str(seconds), pace]
        process = subprocess.Popen(command, env=environment(), stderr=open("ranks.log", "ab"))  # noqa: SIM115
        self._trainings[rank] = training, process

    def outcome(self) -> Outcome:
        began = time.monotonic()
        seconds = 60 * self._options.minutes
        for rank in range(self._options.ranks):
            self._begin_training(rank, 0, seconds)
        for number in range(_KILLS):
            self._sleep_until(began + seconds * (number + 0.5) / _KILLS)
            self._kill_some(began + seconds - time.monotonic())
        problems = [f"rank {rank} ended with {process.wait(600)}"
                    for rank, (_, process) in self._trainings.items() if process.wait(600)]  # fmt: skip
        over = time.monotonic()
        try:
            status = self._host.wait(900)
        except subprocess.TimeoutExpired:
            self._host.kill()
            return Outcome(self._case, [*problems, "the host does not end", *_tail("host.log")])
        if status:
            return Outcome(self._case, [*problems, f"the host ended with {status}", *_tail("host.log")])
        figures = {"killed": dict(self._killed), "host_ended_after_s": round(time.monotonic() - over)}
        return self._judged(problems, figures)

    @staticmethod
    def _sleep_until(moment: float) -> None:
        time.sleep(max(0.0, moment - time.monotonic()))

    def _kill_some(self, left: float) -> None:
        """Kill the host, a training and a process that sends; once, a training with its sender."""
        self._host.kill()
        self._host.wait()
        self._killed["host"] += 1
        ranks = self._random.sample(sorted(self._trainings), 2)
        for rank in ranks[:1]:
            number, training = self._trainings[rank]
            both = self._killed["host"] == 3
            for sender in _senders(training.pid) if both else []:
                with suppress(ProcessLookupError):
                    os.kill(sender, signal.SIGKILL)
                    self._killed["training and sender"] += 1
            training.kill()
            training.wait()
            self._killed["training"] += 1
            self._begin_training(rank, number + 1, max(5.0, left))
        for sender in _senders(self._trainings[ranks[1]][1].pid):
            with suppress(ProcessLookupError):
                os.kill(sender, signal.SIGKILL)
                self._killed["sender"] += 1
        time.sleep(self._random.uniform(1, 20 if self._case == "folder" else 6))
        self._host = self._begin_host()

    def _judged(self, problems: list[str], figures: dict[str, object]) -> Outcome:
        names = write_variants(Path("offline_dump"))
        command = [sys.executable, "-m", "msprobe_ms", "acc_check", "-api_info", "offline_dump", "-o", "offline",
                   "--profile", _PROFILE]  # fmt: skip
        subprocess.run(command, env=environment(), check=True, capture_output=True)
        expected = expected_rows(Path("offline"), names)
        counts: Counter[str] = Counter()
        for rank in range(self._options.ranks):
            verdict = RankVerdict(Path("tables"), rank, expected)
            for log in sorted(Path.cwd().glob(f"rank{rank}-*.log")):
                verdict.look(log)
            verdict.finish()
            counts += verdict.counts
            problems += verdict.problems
        left = [str(path) for path in Path.cwd().glob("spool*/.sending_*")]
        said = Path("ranks.log").read_text()
        figures |= {"calls": dict(counts), "spools_left": len(left), "said_full": said.count("No space left")}
        if counts["trainings never heard of"] > self._killed["training and sender"]:
            problems.append("trainings whose sender was not killed were never heard of")
        if counts["as offline"] == 0:
            problems.append("nothing was judged")
        if self._case == "folder" and os.path.ismount("shared") and "No space left" not in said:
            problems.append("the folder was never full")
        return Outcome(self._case, problems, figures)


def _senders(training: int) -> list[int]:
    """The processes that a training has begun."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(stat.read_text().rpartition(") ")[2].split()[1]) == training:
                found.append(int(stat.parent.name))
    return found


def _tail(path: str) -> list[str]:
    return Path(path).read_text(errors="replace").splitlines()[-5:]


if __name__ == "__main__":
    sys.exit(main(Online))
