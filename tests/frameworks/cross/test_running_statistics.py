"""Running statistics that one side did not record are told, with what compares them."""

from __future__ import annotations

import json
import shutil
from typing import Any

import mindspore
import numpy as np
import pytest
import torch
from compare_parts import dump, tensor
from recording import recording, step_folder, write_config

from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.comparison.reporting.terminal import verdict_lines
from msprobe_ms.comparison.run import Options, Outcome, compare_dumps
from msprobe_ms.dump.model import Dump
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.pytorch import PrecisionDebugger

VALUES = np.linspace(-1, 1, 24, dtype=np.float32).reshape(2, 3, 2, 2)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Dump, Dump]:
    """Two normalisations in MindSpore and in PyTorch, of equal weights, in inference."""
    folder = tmp_path_factory.mktemp("both")
    ours = mindspore.nn.SequentialCell(mindspore.nn.BatchNorm2d(3), mindspore.nn.BatchNorm2d(3)).set_train(False)
    theirs = torch.nn.Sequential(torch.nn.BatchNorm2d(3), torch.nn.BatchNorm2d(3)).eval()
    with recording(ours, folder / "target"):
        ours(mindspore.Tensor(VALUES))
    debugger = PrecisionDebugger(write_config(folder / "golden"))
    debugger.start(theirs)
    theirs(torch.tensor(VALUES))
    debugger.stop()
    debugger.step()
    target, golden = (read_dump(step_folder(folder / side)) for side in ("target", "golden"))
    return target, golden


@pytest.fixture(scope="module")
def without(both: tuple[Dump, Dump]) -> tuple[Dump, Dump]:
    """The same, the golden as other tools record it: without buffers."""
    target, golden = both
    file = golden.path / "dump.json" if golden.path.is_dir() else golden.path
    content = json.loads(file.read_text())
    for fields in content["data"].values():
        for name in ("running_mean", "running_var"):
            assert fields["parameters"].pop(name)
    other = file.parent.parent / "without"
    shutil.copytree(file.parent, other)
    (other / "dump.json").write_text(json.dumps(content))
    return target, read_dump(other)


def told(target: Dump, golden: Dump, **mappings: Any) -> tuple[list[str], list[str]]:
    """What the terminal says of it, and the reasons of values without a counterpart."""
    comparison = compare_dumps(target, golden, Options(mappings=Mappings(**mappings)))
    lines = list(verdict_lines(Outcome("", target, golden, comparison, [])))
    reasons = [row.reason for row in comparison.rows if row.result == "unmatched"]
    return [line for line in lines if line.startswith("not compared: ")], reasons


@pytest.mark.parametrize("turned", [False, True])
def test_where_one_side_has_none_they_are_told_once(without: tuple[Dump, Dump], turned: bool) -> None:
    target, golden = without[::-1] if turned else without
    holder, other = ("golden", "target") if turned else ("target", "golden")
    lines, reasons = told(target, golden, cell={})
    assert lines == [
        f"not compared: moving_mean, moving_variance of 2 modules, the first 0, in the {holder}, as the {other} "
        "recorded no running statistics (buffers are no parameters); msprobe compare_weights of both checkpoints "
        "compares them"
    ]
    if not turned:
        assert (
            reasons == ["The golden's module has no such running statistic in its dump: buffers are not recorded."] * 4
        )


def test_where_both_have_them_they_are_compared(both: tuple[Dump, Dump]) -> None:
    assert told(both[0], both[0]) == ([], [])
    assert told(*both, cell={}) == ([], [])
    comparison = compare_dumps(*both, Options(mappings=Mappings(cell={})))
    named = {row.target.path[-1]: row for row in comparison.rows if row.target and row.state == "parameters"}
    assert [golden.path[-1] for name in ("moving_mean", "moving_variance") if (golden := named[name].golden)] == [
        "running_mean",
        "running_var",
    ]
    assert all(row.deviation == 0 for row in named.values())


def test_one_module_is_named() -> None:
    def side(*places: str) -> Dump:
        return dump([tensor(place, [1.0, 2.0], "Cell.a.norm.BatchNorm1d.forward.0") for place in places])

    (line,) = told(side("output.0", "parameters.moving_mean"), side("output.0"))[0]
    assert line.startswith("not compared: moving_mean of module a.norm in the target, as the golden recorded no ")


def test_other_parameters_of_one_side_are_none_of_them() -> None:
    def side(*places: str) -> Dump:
        return dump([tensor(place, [1.0, 2.0], "Cell.a.norm.BatchNorm1d.forward.0") for place in places])

    assert told(side("output.0", "parameters.weight"), side("output.0")) == (
        [],
        ["The golden's call has no such value."],
    )
