"""Metrics of the user's own: loaded from their files, shown in every profile, and never the end of a comparison."""

from __future__ import annotations

import csv
import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from msprobe_ms.arrays.custom_metrics import Unloaded, load_algorithms
from msprobe_ms.cli.main import main
from msprobe_ms.support.errors import UsageError

GOOD = """
from __future__ import annotations
from dataclasses import dataclass
import numpy as np

@dataclass
class Pair:
    golden: np.ndarray

def median_error(golden, target):
    golden, target = golden.astype(np.float64), target.astype(np.float64)
    return np.median(np.abs(target - golden)), f"of {golden.size}"

def in_place(golden, target):
    golden -= target
    return float(np.abs(golden).max()), None

def broken(golden, target):
    return 1 / 0, ""

def leaves(golden, target):
    raise SystemExit(3)

def alone(golden, target):
    return 0.5

def text(golden, target):
    return "fine", "=1+1"

def infinite(golden, target):
    return np.inf, ""

def one(golden):
    return 1, ""

number = 3
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "numpy.py"  # a name that an import would find elsewhere
    path.write_text(GOOD)
    return path


def test_values_and_messages(file: Path) -> None:
    golden, target = np.arange(5, dtype=np.float32), np.array([0, 2, 4, 6, 13], np.float32)
    kept = golden.copy()
    names = ["median_error", "in_place", "broken", "leaves", "alone", "text", "infinite"]
    found = {each.name: each.measure(target, golden) for each in load_algorithms([f"{file}:{name}" for name in names])}
    assert found == {
        "median_error": (2.0, "of 5"),
        "in_place": (9.0, ""),
        "broken": ("ZeroDivisionError: division by zero", ""),
        "leaves": ("SystemExit: 3", ""),
        "alone": ("returned float, expected (value, message)", ""),
        "text": ("fine", "=1+1"),
        "infinite": (np.inf, ""),
    }
    np.testing.assert_array_equal(golden, kept)


def test_two_of_one_name_are_told_apart(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    other.write_text("def text(golden, target):\n    return 1, ''\n")
    names = [each.name for each in load_algorithms([f"{file}:text", f"{other}:text", f"{file}:text"])]
    assert names == ["text", f"{other}:text"]


def test_they_travel_between_processes(file: Path) -> None:
    (algorithm,) = load_algorithms([f"{file}:median_error"])
    again = pickle.loads(pickle.dumps(Unloaded(algorithm.name, algorithm.source))).load()
    assert (again.name, again.measure(np.ones(3), np.zeros(3))) == ("median_error", (1.0, "of 3"))


def test_a_file_that_changed_is_read_again(file: Path) -> None:
    load_algorithms([f"{file}:text"])
    file.write_text("def text(golden, target):\n    return 'changed', ''\n")
    (algorithm,) = load_algorithms([f"{file}:text"])
    assert algorithm.measure(np.ones(1), np.ones(1))[0] == "changed"


@pytest.mark.parametrize(
    ("content", "name", "told"),
    [
        (None, "nowhere.py:f", "there is no Python file nowhere.py; expected FILE.py:FUNCTION, a function (golden, "),
        (None, "f", "expected FILE.py:FUNCTION, a function (golden, target) -> (value, message) of two numpy arrays"),
        (None, ":f", "expected FILE.py:FUNCTION"),
        (GOOD, "own.py:", "expected FILE.py:FUNCTION"),
        (GOOD, "own.py:medium", "there is no function medium in "),
        (GOOD, "own.py:number", "there is no function number in "),
        (GOOD, "own.py:one", "one does not take two arrays: too many positional arguments; expected FILE.py:FUNCTION"),
        ("x = 1\ny = z\n", "own.py:f", "own.py, line 2: NameError: name 'z' is not defined"),
        ("x = 1\ndef f(:\n", "own.py:f", "own.py, line 2: SyntaxError: invalid syntax"),
        ("import no_such_module", "own.py:f", "own.py, line 1: ModuleNotFoundError: No module named 'no_such_module'"),
        ("raise SystemExit(1)", "own.py:f", "own.py, line 1: SystemExit: 1"),
    ],
)
def test_mistakes_are_one_clear_error(
    content: str | None, name: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path("own.py").write_text(content)
    with pytest.raises(UsageError) as caught:
        load_algorithms([name])
    assert str(caught.value).startswith(f"-alg {name}: {told}")
    assert main(["compare", "-tp", "a", "-gp", "b", "-alg", name]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith(f"msprobe: -alg {name}: {told}") and printed.count("\n") == 1


def written_dump(folder: Path, factor: float, task: str = "tensor") -> Path:
    """A dump of two tensors of one call, and of a scalar argument."""
    (folder / "dump_tensor_data").mkdir(parents=True)
    leaves = []
    for place in range(2):
        array = np.arange(6, dtype=np.float32).reshape(2, 3) * (factor if place else 1)
        name = f"Functional.relu.0.forward.input.{place}.npy"
        np.save(folder / "dump_tensor_data" / name, array)
        leaves.append({
            "type": "mindspore.Tensor", "dtype": "Float32", "shape": [2, 3], "Max": float(array.max()),
            "Min": float(array.min()), "Mean": float(array.mean()), "Norm": float(np.linalg.norm(array)),
            **({"data_name": name} if task == "tensor" else {}),
        })  # fmt: skip
    entry = {"input_args": [*leaves, {"type": "int", "value": 1}], "input_kwargs": {}, "output": []}
    content = {"task": task, "level": "L1", "framework": "mindspore", "data": {"Functional.relu.0.forward": entry}}
    (folder / "dump.json").write_text(json.dumps(content))
    return folder


@pytest.mark.parametrize("profile", ["v110", "latest", "own"])
def test_their_columns_in_every_profile(file: Path, tmp_path: Path, profile: str) -> None:
    target, golden = written_dump(tmp_path / "t", 1.5), written_dump(tmp_path / "g", 1)
    (target / "dump_tensor_data" / "Functional.relu.0.forward.input.0.npy").unlink()
    command = ["compare", "-tp", str(target), "-gp", str(golden), "-o", str(tmp_path / "out"), "--csv"]
    command += ["-alg", f"{file}:median_error", f"{file}:broken", "-alg", f"{file}:text", "--profile", profile]
    assert main(command) == 0
    (table,) = (tmp_path / "out").glob("*.csv")
    with table.open(encoding="utf-8", newline="") as text:
        missing, there, argument = csv.DictReader(text)
    names = ["median_error", "broken", "text"]
    assert [there[name] for name in names] == ["1.25", "ZeroDivisionError: division by zero", "fine"]
    assert [there[f"{name} message"] for name in names] == ["of 6", "", "'=1+1"]
    assert [missing[name] for name in names] == [argument[name] for name in names] == ["no data"] * 3


def test_statistics_have_nothing_to_measure(file: Path, tmp_path: Path) -> None:
    target, golden = (written_dump(tmp_path / name, 1, "statistics") for name in "tg")
    command = ["compare", "-tp", str(target), "-gp", str(golden), "-o", str(tmp_path / "out"), "--csv"]
    assert main([*command, "-alg", f"{file}:median_error"]) == 0
    (table,) = (tmp_path / "out").glob("*.csv")
    assert "median_error" not in table.read_text()
