"""The first entry that makes NaN or infinity of finite values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernel_dumps import compiled_dump, lay_out, raw_files

from msprobe_ms.cli.main import main
from msprobe_ms.comparison.kernels.first_nonfinite import FirstNonFinite, NonFiniteValue, first_bad, write_answer
from msprobe_ms.dump.kernels.index import write_index
from msprobe_ms.dump.kernels.kernel_files import read_kernel_files
from msprobe_ms.dump.kernels.reduce import reduce
from msprobe_ms.support.errors import DumpFormatError

INF, NAN = np.inf, np.nan


@pytest.fixture(scope="module")
def overflowing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A compiled training whose weights are so large that products overflow."""
    return compiled_dump(tmp_path_factory.mktemp("overflow") / "dump", scale=1e20, steps=1)


def by_hand(root: Path) -> str:
    """The file of the first output that is not finite, by timestamps, of a kernel all of whose inputs are."""
    kernels: dict[str, list[Path]] = {}
    for path in sorted(raw_files(root), key=lambda path: path.name.split(".")[-6]):
        kernels.setdefault(".".join(path.name.split(".")[:-6]), []).append(path)
    for name, paths in kernels.items():
        finite = {path: bool(np.isfinite(np.load(path)).all()) for path in paths}
        bad = [path for path in paths if ".output." in path.name and not finite[path]]
        if bad and all(finite[path] for path in paths if ".input." in path.name) and not name.startswith("Parameter"):
            return str(bad[0])
    raise AssertionError


def test_a_compiled_training_that_overflows(overflowing: Path, tmp_path: Path) -> None:
    (raw,) = first_bad(overflowing)
    assert raw.first is not None and raw.first.file == by_hand(overflowing)
    assert raw.first.item == "output.0" and raw.first.entry.startswith("Kernel.")
    # Both from the raw files and from their index, with or without tensors.
    files = read_kernel_files(raw_files(overflowing))
    for task in ("tensor", "statistics"):
        write_index(tmp_path / task, files, task=task)
        (found,) = first_bad(tmp_path / task)
        assert found.first is not None and found.entries == raw.entries
        assert (found.first.entry, found.first.cell) == (raw.first.entry, raw.first.cell)
        assert found.first.file == (raw.first.file if task == "tensor" else "")


def kernels(tmp_path: Path, *tensors: tuple[str, list[float]]) -> Path:
    root = tmp_path / "dump"
    lay_out(root / "rank_0/Net/0/0", {name: np.array(values, np.float32) for name, values in tensors})
    return root


def test_an_infinity_that_is_meant_does_not_hide_a_nan(tmp_path: Path) -> None:
    mask, good = [0, -INF], [1, 2]
    root = kernels(
        tmp_path,
        ("Mask.Default_mask-Mask_Mask-op0.output.0", mask),
        ("Add.Default_a-A_Add-op0.input.0", mask),
        ("Add.Default_a-A_Add-op0.output.0", mask),
        ("Log.Default_b-B_Log-op0.input.0", good),
        ("Log.Default_b-B_Log-op0.output.0", [NAN, 1]),
    )
    (found,) = first_bad(root)
    assert found.first is not None and found.first_nan is not None and found.outside is None
    assert (found.first.entry, found.first.holds, found.first.cell) == (
        "Kernel.Mask.0.forward",
        "-inf",
        "Cell.mask.Mask.forward.0",
    )
    assert (found.first_nan.entry, found.first_nan.holds) == ("Kernel.Log.0.forward", "NaN")
    assert found.entries == 3


def test_the_mean_of_both_infinities_is_no_nan(tmp_path: Path) -> None:
    root = kernels(
        tmp_path,
        ("Div.Default_a-A_Div-op0.input.0", [0, 1]),
        ("Div.Default_a-A_Div-op0.output.0", [INF, -INF]),
        ("Sub.Default_b-B_Sub-op0.input.0", [INF, -INF]),
        ("Sub.Default_b-B_Sub-op0.output.0", [NAN, -INF]),
    )
    (found,) = first_bad(root)
    assert found.first is not None and found.first_nan is not None
    assert (found.first.entry, found.first.holds) == ("Kernel.Div.0.forward", "inf")
    assert found.first_nan.entry == "Kernel.Sub.0.forward"


def test_what_came_in_from_outside(tmp_path: Path) -> None:
    bad = [1, NAN]
    root = kernels(
        tmp_path,
        ("Add.Default_a-A_Add-op0.input.0", bad),
        ("Add.Default_a-A_Add-op0.output.0", [3, NAN]),
        ("Parameter.x.output.0", bad),
    )
    (found,) = first_bad(root)
    assert found.first is None and found.first_nan is None and found.outside is not None
    assert (found.outside.entry, found.outside.item) == ("Kernel.Add.0.forward", "input.0")


def test_a_kernel_that_writes_in_place(tmp_path: Path) -> None:
    """Files show its input as it is afterwards."""
    bad = [1, INF]
    root = kernels(
        tmp_path,
        ("Add.Default_a-A_Add-op0.output.0", [1, 1]),
        ("SGD.Default_optimizer-SGD_SGD-op0.input.0", bad),
        ("SGD.Default_optimizer-SGD_SGD-op0.input.1", [1, 3]),
        ("SGD.Default_optimizer-SGD_SGD-op0.output.0", bad),
    )
    (found,) = first_bad(root)
    assert found.first is not None and found.first.entry == "Kernel.SGD.0.forward" and found.outside is None


def test_tables_of_statistics(tmp_path: Path) -> None:
    root = kernels(tmp_path, ("Add.Default_Add-op0.input.0", [1, 1]), ("Add.Default_Add-op0.output.0", [1, INF]))
    reduce(read_kernel_files(raw_files(root)), ["max", "min", "positive inf count"])
    (found,) = first_bad(root)
    assert found.first is not None and found.first.file == str(root / "rank_0/Net/0/0/statistic.csv")


def test_dumps_of_calls(tmp_path: Path) -> None:
    def leaf(*figures: float) -> dict[str, Any]:
        return {
            "type": "mindspore.Tensor",
            "dtype": "Float16",
            "shape": [2],
            **dict(zip(("Max", "Min", "Mean", "Norm"), figures, strict=True)),
        }

    data = {
        # The norm of large float16 values overflows where it is computed in float16: no fault of theirs.
        "Functional.exp.0.forward": {
            "input_args": [leaf(6e4, 1, 3, INF)],
            "input_kwargs": {},
            "output": [leaf(2, 1, 1, 1)],
        },
        "Functional.log.0.forward": {
            "input_args": [leaf(2, 1, 1, 1)],
            "input_kwargs": {},
            "output": [leaf(1, 0, NAN, NAN)],
        },
        "Cell.fc.Dense.forward.0": {
            "input_args": [leaf(2, 1, 1, 1)],
            "input_kwargs": {},
            "output": [leaf(1, 0, NAN, NAN)],
        },
    }
    folder = tmp_path / "step0" / "rank0"
    folder.mkdir(parents=True)
    (folder / "dump.json").write_text(json.dumps({"task": "statistics", "level": "mix", "data": data}))
    (folder / "construct.json").write_text('{"Functional.log.0.forward": "Cell.fc.Dense.forward.0"}')
    (folder / "stack.json").write_text('{"Functional.log.0.forward": ["File a.py, line 3, in construct, \\n log(x)"]}')
    (found,) = first_bad(tmp_path)
    assert found.first is not None
    assert (found.first.entry, found.first.cell) == ("Functional.log.0.forward", "Cell.fc.Dense.forward.0")
    assert found.first.called == "File a.py, line 3, in construct, log(x)" and found.entries == 2


def test_a_cast_of_an_infinite_weight_makes_nothing(tmp_path: Path) -> None:
    """Its result equals its input, like what a compiled kernel writes in place; the weight is named."""

    def leaf(*figures: float) -> dict[str, Any]:
        names = zip(("Max", "Min", "Mean", "Norm"), figures, strict=True)
        return {"type": "mindspore.Tensor", "dtype": "Float32", "shape": [2], **dict(names)}

    finite, gamma, both = leaf(2, 1, 1, 1), leaf(INF, INF, INF, INF), leaf(INF, -INF, NAN, INF)
    inside = {
        "Tensor.astype.0.forward": ([gamma], [gamma]),
        "Primitive.layer_norm.LayerNorm.0.forward": ([finite, gamma, finite], [both]),
    }
    cell = "Cell.norm.LayerNorm.forward.0"
    data = {
        name: {"input_args": taken, "input_kwargs": {}, "output": given}
        for name, (taken, given) in {**inside, cell: ([finite], [both])}.items()
    }
    data[cell]["parameters"] = {"gamma": [gamma], "beta": [finite]}  # type: ignore[assignment]
    folder = tmp_path / "step0" / "rank0"
    folder.mkdir(parents=True)
    (folder / "dump.json").write_text(json.dumps({"task": "statistics", "level": "mix", "data": data}))
    (folder / "construct.json").write_text(json.dumps(dict.fromkeys(inside, cell)))
    (found,) = first_bad(tmp_path)
    assert found.first is None and found.outside is not None
    assert (found.outside.entry, found.outside.item) == ("Tensor.astype.0.forward", "input.0")
    assert found.outside.weight == f"{cell}.parameters.gamma.0"


def test_the_command(overflowing: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["overflow_check", "-i", str(overflowing), "-o", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    (report,) = tmp_path.glob("anomaly_analyze_overflow_check_*.json")
    (answer,) = json.loads(report.read_text()).values()
    assert "the first call that turns finite inputs into NaN or infinity: output.0 holds" in told
    for key in ("entry", "cell", "scope", "file", "called"):
        assert answer["first"][key] and answer["first"][key] in told


def test_a_dump_without_any_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = kernels(tmp_path, ("Add.Default_Add-op0.output.0", [1, 1]))
    assert main(["overflow_check", "-i", str(root), "-o", str(tmp_path)]) == 0
    assert "every value is finite" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["nowhere", "empty"])
def test_nothing_to_search_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(DumpFormatError, match=name):
        first_bad(tmp_path / name)


def test_the_file_names_the_first_nan_where_it_is_the_first_of_all_too(tmp_path: Path) -> None:
    value = NonFiniteValue("Functional.log.0.forward", "output.0", "NaN")
    answer = json.loads(write_answer([FirstNonFinite("dump", value, None, None, 1)], tmp_path).read_text())["dump"]
    assert answer["first_nan"] == answer["first"]
