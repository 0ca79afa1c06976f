"""The command acc_check: every planted fault is found, and whatever an API does costs no more than its own row."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forked import run_forked

from msprobe_ms.cli import main

pytestmark = pytest.mark.processes

FAULTY = Path(__file__).parents[1] / "make" / "faulty_torch"


def tensor(shape: list[int], low: float = -1.0, high: float = 1.0, dtype: str = "torch.float32") -> dict[str, Any]:
    mean, count = (low + high) / 2, int(np.prod(shape))
    norm = float(np.sqrt(count * (mean**2 + (high - low) ** 2 / 12)))
    if "int" in dtype:
        low, high = int(low), int(high)
    return {"type": "torch.Tensor", "dtype": dtype, "shape": shape, "Max": high, "Min": low, "Mean": mean, "Norm": norm}


def number(value: Any) -> dict[str, Any]:
    return {"type": type(value).__name__, "value": value}


def call(output: list[int], *arguments: Any, dtype: str = "torch.float32", **keywords: Any) -> dict[str, Any]:
    return {"input_args": list(arguments), "input_kwargs": keywords, "output": [tensor(output, dtype=dtype)]}


#: One call of each function that sitecustomize.py makes wrong, and two that it leaves alone.
CALLS: dict[str, dict[str, Any]] = {
    "Torch.abs.0": call([4, 5], tensor([4, 5])),
    "Torch.softmax.0": call([4, 16], tensor([4, 16], 80, 100), number(-1)),
    "Functional.layer_norm.0": call([8, 16], tensor([8, 16], 0.0, 0.01), [number(16)]),
    "Torch.sub.0": call([6], tensor([6]), tensor([6])),
    "Torch.sum.0": call([], tensor([5000], 0, 1, "torch.float16"), dtype="torch.float16"),
    "Torch.mean.0": call([5], tensor([5, 5]), number(0)),
    "Torch.mul.0": call([6], tensor([6]), tensor([6])),
    "Torch.exp.0": call([50], tensor([50])),
    "Torch.matmul.0": call([8, 8], tensor([8, 8]), tensor([8, 8])),
    "Torch.tanh.0": call([9], tensor([9])),
    "Functional.relu.0": call([9], tensor([9])),
    "Torch.gather.0": call([3, 4], tensor([3, 6]), number(1), tensor([3, 4], 0, 5, "torch.int64")),
    "Torch.cos.0": call([9], tensor([9])),
    "Torch.sin.0": call([9], tensor([9])),
    "Torch.sinh.0": call([9], tensor([9])),
    "Torch.cosh.0": call([9], tensor([9])),
    "Torch.sigmoid.0": call([4, 5], tensor([4, 5])),
}
#: With gradients, which are what is wrong.
BACKWARD = {"Torch.mul.0": ([6], [6]), "Torch.exp.0": ([50],)}


def write_dump(folder: Path, calls: dict[str, dict[str, Any]], **envelope: Any) -> Path:
    data: dict[str, Any] = {}
    for name, body in calls.items():
        data[f"{name}.forward"] = body
        if name in BACKWARD:
            arguments = BACKWARD[name]
            data[f"{name}.backward"] = {"input": body["output"], "output": [tensor(list(shape)) for shape in arguments]}
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "dump.json"
    whole = {
        "task": "statistics",
        "level": "L1",
        "framework": "pytorch",
        "dump_data_dir": None,
        **envelope,
        "data": data,
    }
    file.write_text(json.dumps(whole))
    return file


def command(dump: Path, output: Path, *options: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "msprobe_ms",
        "acc_check",
        "-api_info",
        str(dump),
        "-o",
        str(output),
        "--self",
        *options,
    ]


def run(dump: Path, output: Path, *options: str, faulty: bool = False, status: int = 0) -> str:
    environment = {**os.environ, "PYTHONPATH": str(FAULTY)} if faulty else dict(os.environ)
    done = subprocess.run(command(dump, output, *options), env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def table(folder: Path, kind: str) -> list[dict[str, str]]:
    (file,) = folder.glob(f"accuracy_checking_{kind}_*.csv")
    with file.open(encoding="utf-8-sig", newline="") as opened:
        return list(csv.DictReader(opened))


def strangers(folder: Path) -> dict[str, dict[str, Any]]:
    """Calls that no recording holds: of what else can be found in the framework's modules."""
    return {
        "Torch.os.system.0": call([], number(f"touch {folder}/by_system")),
        "Torch.builtins.exec.0": call([], number(f"open('{folder}/by_exec', 'w')")),
        "Torch.save.0": call([], number(1), number(f"{folder}/by_save")),
        "Torch.from_file.0": call([4], number(f"{folder}/by_from_file"), number(True), number(4)),
    }


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("faulty")
    write_dump(folder, {**CALLS, **strangers(folder)})
    run(folder / "dump.json", folder / "out", "--timeout", "15", "-save_error_data", faulty=True)
    return folder


def test_every_planted_fault_is_found_and_nothing_else(faulty: Path) -> None:
    rows = {row["API name"]: row for row in table(faulty / "out", "result")}
    assert list(rows) == [*CALLS, *strangers(faulty)], "one row for each call, in the order of the dump"
    found = {name: (row["Forward Test Success"], row["Backward Test Success"]) for name, row in rows.items()}
    right = ("pass", "")
    assert found == {
        "Torch.abs.0": right,
        **dict.fromkeys(
            ("Torch.softmax.0", "Functional.layer_norm.0", "Torch.sub.0", "Torch.sum.0", "Torch.mean.0",
             "Torch.matmul.0", "Torch.tanh.0", "Functional.relu.0", "Torch.gather.0", "Torch.cos.0"),
            ("error", ""),
        ),
        "Torch.mul.0": ("pass", "error"),
        "Torch.exp.0": ("pass", "error"),
        **dict.fromkeys(("Torch.sin.0", "Torch.sinh.0", "Torch.cosh.0"), ("SKIP", "")),
        "Torch.sigmoid.0": right,
        **dict.fromkeys(strangers(faulty), ("SKIP", "")),
    }  # fmt: skip


def test_nothing_is_run_but_operators(faulty: Path) -> None:
    assert not list(faulty.glob("by_*"))


def test_what_ends_its_process_or_hangs_costs_its_own_row(faulty: Path) -> None:
    messages = {row["API name"]: row["Message"] for row in table(faulty / "out", "result")}
    assert messages["Torch.sin.0"] == "crashed: signal 11"
    assert messages["Torch.sinh.0"] == "crashed: exit 3"
    assert messages["Torch.cosh.0"] == "timed out after 15 s"


def test_an_operator_that_is_not_deterministic_is_told(faulty: Path) -> None:
    (row,) = [row for row in table(faulty / "out", "details") if row["API Name"] == "Torch.cos.0.forward.output.0"]
    assert row["Message"].startswith("not deterministic: a second run gave other figures")


def test_a_script_makes_what_is_wrong_again(faulty: Path) -> None:
    (folder,) = (faulty / "out").glob("error_data_*")
    script = folder / "Torch.sub.0.reproduce.py"
    # What is wrong here is the process, not torch: alone, torch is right.
    done = run_forked(script, framework="torch", timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("output 0: largest error 0") or "e-0" in done.stdout
    bench, device = (np.load(folder / f"Torch.sub.0.forward.output.0.{side}.npy") for side in ("bench", "device"))
    np.testing.assert_allclose(bench, -device, rtol=1e-6)
    backward = run_forked(folder / "Torch.mul.0.reproduce.py", framework="torch", timeout=120)
    assert backward.returncode == 0, backward.stderr
    assert "gradient 0: largest error" in backward.stdout


def digests(folder: Path) -> dict[str, bytes]:
    names = {kind: next(folder.glob(f"accuracy_checking_{kind}_*.csv")) for kind in ("result", "details")}
    return {kind: file.read_bytes() for kind, file in names.items()}


HEALTHY = {
    f"Torch.{api}.{n}": call([4, 5], tensor([4, 5])) for n in range(4) for api in ("sin", "tanh", "cos", "abs", "erf")
}


def test_tables_do_not_depend_on_workers_or_on_interruptions(tmp_path: Path) -> None:
    dump = write_dump(tmp_path, HEALTHY)
    said = run(dump, tmp_path / "two", "-n", "2")
    judged = "20 API calls judged (20 forward, 0 backward): 20 pass, 0 warning, 0 error; 0 entries not checked"
    assert said.startswith(f"PASS: {dump}: {judged}")
    expected = digests(tmp_path / "two")
    output = tmp_path / "killed"
    process = subprocess.Popen(command(dump, output), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while len(journalled(output)) < 7 and process.poll() is None:
        time.sleep(0.005)
    process.kill()
    process.wait()
    assert journalled(output), "a journal is left"
    said = run(dump, output)  # with one worker
    assert "of the calls were checked by an earlier run" in said
    assert digests(output) == expected
    assert not list(output.glob("*.journal"))


def journalled(output: Path) -> list[bytes]:
    return [line for file in output.glob("*.journal") for line in file.read_bytes().splitlines()[1:]]


def test_killed_runs_leave_no_process(tmp_path: Path) -> None:
    dump = write_dump(tmp_path, {"Torch.cosh.0": CALLS["Torch.cosh.0"]})
    environment = {**os.environ, "PYTHONPATH": str(FAULTY), "MSPROBE_TEST_MARK": str(tmp_path)}
    process = subprocess.Popen(command(dump, tmp_path / "out"), env=environment, stderr=subprocess.DEVNULL)
    while len(marked(tmp_path)) < 5:  # the command, its worker, the process with the framework, a child for each side
        time.sleep(0.05)
    time.sleep(1)  # the API hangs
    process.send_signal(signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + 20
    while marked(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert marked(tmp_path) == []


def marked(folder: Path) -> list[str]:
    """The processes that have the environment of the test."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str(folder).encode() in (process / "environ").read_bytes():
                found.append(process.name)
        except OSError:
            continue
    return found


#: Each of these leaves nothing to run.
NOTHING_RUN = ["--black_list", "sin", "tanh", "cos", "abs", "erf"]


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (["--exit-code"], 0, "NOTHING CHECKED"),
        (["--exit-code", "--strict"], 1, "not checked: 20 in black list"),
        (["-csv_path", "nothing.csv"], 2, "accepted is a file accuracy_checking_result_<14 digits>.csv"),
        (["-csv_path", "accuracy_checking_result_20260101000000.csv"], 2, "there is no accuracy_checking_"),
        (["-d", "0", "0"], 2, "-d 0 0: a device is named twice"),
        (["-n", "65"], 2, "accepted are 1 to 64 workers"),
        (["--thresholds", "nothing.yaml"], 2, "nothing.yaml"),
    ],
)
def test_options(tmp_path: Path, capfd: pytest.CaptureFixture[str], options: list[str], status: int, said: str) -> None:
    dump = write_dump(tmp_path, HEALTHY)
    try:
        code = main(command(dump, tmp_path / "out", *options, *NOTHING_RUN)[3:])
    except SystemExit as exit_:
        code = int(exit_.code or 0)
    shown = capfd.readouterr()
    assert said in shown.out + shown.err
    assert code == status


def test_without_being_asked_a_library_does_not_judge_itself(tmp_path: Path) -> None:
    dump = write_dump(tmp_path, {"Torch.abs.0": HEALTHY["Torch.abs.0"]})
    asked = [part for part in command(dump, tmp_path / "out") if part != "--self"]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.startswith("NOTHING CHECKED")
    (row,) = table(tmp_path / "out", "result")
    assert row["Forward Test Success"] == "SKIP"
    assert row["Message"].startswith("the only reference is this pytorch ") and row["Message"].endswith(
        "check with --self"
    )


def test_an_overflow_that_the_reference_has_not_is_abnormal(tmp_path: Path) -> None:
    calls = {
        "Functional.relu.0": CALLS["Functional.relu.0"],
        "Torch.exp2.0": call([9], tensor([9], 100.0, 200.0)),
        "Torch.abs.0": CALLS["Torch.abs.0"],
    }
    dump = write_dump(tmp_path, calls)
    asked = command(dump, tmp_path / "out", "--exit-code")
    asked[asked.index("acc_check")] = "run_overflow_check"
    environment = {**os.environ, "PYTHONPATH": str(FAULTY)}
    done = subprocess.run(asked, env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines() == [
        "ABNORMAL: 1 no overflow, 1 normal, 1 abnormal, 0 SKIP",
        "  abnormal: Functional.relu.0: 1 elements are NaN or infinite, in the reference none",
    ]
    assert done.returncode == 1
    (file,) = (tmp_path / "out").glob("overflow_checking_result_*.csv")
    with file.open(encoding="utf-8-sig", newline="") as opened:
        assert [row["Verdict"] for row in csv.DictReader(opened)] == ["abnormal", "normal", "no overflow"]
