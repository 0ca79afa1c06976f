"""Task free_benchmark: planted faults are found, healthy computations are not, and the training does not notice."""

from __future__ import annotations

import csv
import json
import logging
import random
import types
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
import torch
from mindspore import ops
from thorough import thorough

import msprobe_ms
import msprobe_ms.pytorch
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.log import logger
from torture.interrupts.places import Interruption, Survey

F = torch.nn.functional

#: Columns of msprobe, and then our own.
COLUMNS = ["rank", "pert_type", "stage", "step", "api_name", "max_rel", "dtype", "shape", "output_index"]
OWN = ["call", "kind", "condition", "changed", "elements", "call_site"]


class Side:
    """One framework: its debugger, tensors, and functions under the same names."""

    def __init__(self, name: str, debugger: type, api: Any, title: str) -> None:
        self.name, self.debugger, self.api, self.title = name, debugger, api, title

    def tensor(self, values: Any, dtype: str = "float32") -> Any:
        array = np.asarray(values, np.float64)
        if self.name == "pytorch":
            return torch.tensor(array, dtype=getattr(torch, dtype))
        return mindspore.Tensor(array.astype(dtype))

    def numpy(self, tensor: Any) -> np.ndarray:
        return tensor.detach().numpy() if self.name == "pytorch" else tensor.asnumpy()

    def gradient(self, function: Callable[[Any], Any], x: Any) -> np.ndarray:
        """The gradient of the sum of what a function gives."""
        if self.name == "pytorch":
            leaf = x.clone().requires_grad_()
            function(leaf).sum().backward()
            return leaf.grad.numpy().copy()
        return mindspore.grad(lambda each: function(each).sum())(x).asnumpy()


SIDES = {
    "mindspore": Side("mindspore", msprobe_ms.PrecisionDebugger, ops, "mindspore.ops"),
    "pytorch": Side("pytorch", msprobe_ms.pytorch.PrecisionDebugger, torch, "torch"),
}


@pytest.fixture(params=SIDES)
def side(request: pytest.FixtureRequest) -> Side:
    return SIDES[request.param]


class Check:
    """A debugger of the task, and the tables that it wrote."""

    def __init__(self, side: Side, folder: Path, general: dict[str, Any], section: dict[str, Any]) -> None:
        self.out = folder / "out"
        content = {"task": "free_benchmark", "dump_path": str(self.out), "free_benchmark": section, **general}
        (folder / "config.json").write_text(json.dumps(content))
        self.debugger = side.debugger(str(folder / "config.json"))

    def run(self, *functions: Callable[[], Any]) -> list[Any]:
        """Call functions in a step each; what they returned."""
        found = []
        for function in functions:
            self.debugger.start()
            try:
                found.append(function())
            finally:
                self.debugger.stop()
                self.debugger.step()
        return found

    def rows(self) -> list[dict[str, str]]:
        return _rows(self.out / "free_benchmark.csv")

    def summary(self) -> dict[str, dict[str, str]]:
        return {row["api_name"]: row for row in _rows(self.out / "free_benchmark_summary.csv")}


def _rows(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def check_of(tmp_path: Path) -> Iterator[Callable[..., Check]]:
    made = []

    def make(side: Side, general: dict[str, Any] | None = None, **section: Any) -> Check:
        made.append(Check(side, tmp_path, general or {}, section))
        return made[-1]

    yield make
    for each in made:
        each.debugger.retire()


# -- what is found -----------------------------------------------------------------------------------------------------


def _cancels(side: Side) -> Any:
    a, b = side.tensor(np.full(16, 1e5)), side.tensor(np.linspace(0.5, 2, 16))
    return a + b - a


def _log_of_exp(side: Side) -> Any:
    return side.api.log(side.api.exp(side.tensor(np.linspace(1e-5, 9e-5, 16))))


def _variance(side: Side) -> Any:
    x = side.tensor(1e3 + np.random.default_rng(0).standard_normal(256))
    return (x * x).mean() - x.mean() * x.mean()


def _unsafe_softmax(side: Side) -> Any:
    raised = side.api.exp(side.tensor(np.linspace(80, 100, 32)))
    return raised / raised.sum()


@pytest.mark.parametrize("mode", ["add_noise", "bit_noise"])
def test_planted_faults_are_found_where_they_are(side: Side, check_of: Any, mode: str) -> None:
    faults = {
        _cancels: ("__sub__", "change"),
        _log_of_exp: ("log", "change"),
        _variance: ("__sub__", "change"),
        _unsafe_softmax: ("exp", "infinity"),
    }
    check = check_of(side, pert_mode=mode)
    check.run(*(lambda fault=fault: fault(side) for fault in faults))
    rows = check.rows()
    for step, (api, kind) in enumerate(faults.values()):
        first = next(row for row in rows if row["step"] == str(step))
        assert (first["api_name"].rpartition(".")[2], first["kind"]) == (api, kind)
        assert float(first["max_rel"]) > 2e-4
        assert kind != "change" or float(first["condition"]) > 800
        assert "test_free_benchmark.py:" in first["call_site"]
        others = {row["api_name"].rpartition(".")[2] for row in rows if row["step"] == str(step)} - {api}
        assert others <= {"__truediv__"}  # which makes NaN of infinities


@pytest.mark.parametrize(
    ("mode", "dtype"),
    [
        *((mode, "float32") for mode in ("add_noise", "bit_noise", "no_change", "to_cpu", "change_value")),
        *((mode, "float16") for mode in ("add_noise", "improve_precision")),
    ],
)
def test_well_scaled_computations_are_consistent(side: Side, check_of: Any, mode: str, dtype: str) -> None:
    random_numbers = np.random.default_rng(3)
    x = side.tensor(random_numbers.standard_normal((64, 96)), dtype)
    w = side.tensor(random_numbers.standard_normal((96, 32)) / 10, dtype)

    def healthy() -> Any:
        api = side.api
        y = api.matmul(x, w)
        centred = y - y.mean(-1, True) if side.name == "pytorch" else y - y.mean(-1, keep_dims=True)
        shares = torch.softmax(y, -1) if side.name == "pytorch" else ops.softmax(y, -1)
        mask = side.tensor(np.triu(np.ones((64, 32))), dtype)
        return api.tanh(centred) + shares * (1 - mask) + y.sum() / 1000 + centred.mean()

    check = check_of(side, pert_mode=mode)
    check.run(healthy)
    assert check.rows() == []
    checked = {api.rpartition(".")[2] for api, row in check.summary().items() if row["checked"] != "0"}
    if mode == "change_value":
        assert checked <= {"sum", "mean"} and "sum" in checked
    else:
        assert {"matmul", "__sub__", "softmax", "tanh"} <= checked


def _planted(**functions: Callable[..., Any]) -> types.ModuleType:
    module = types.ModuleType("planted")
    vars(module).update(functions)
    return module


def _once(function: Callable[[Any, bool], Any]) -> Callable[[Any], Any]:
    """A function that is told whether it is called for the first time."""
    calls = iter((True,))
    return lambda x: function(x, next(calls, False))


def test_results_that_become_zero_or_nan_or_jump_are_found(side: Side, check_of: Any) -> None:
    one, none = side.tensor(np.r_[1, np.zeros(99)]), side.tensor(np.zeros(100))
    nan = side.tensor(np.r_[np.nan, np.zeros(99)])
    planted = _planted(
        vanishes=_once(lambda x, first: x + (0 if first else -1 * one)),
        breaks=_once(lambda x, first: x + (none if first else nan)),
        jumps=_once(lambda x, first: x if first else x + 2 * one),
    )
    check = check_of(side, pert_mode="no_change")
    for name in ("vanishes", "breaks", "jumps"):
        check.debugger.register_custom_api(planted, name)
    ones = side.tensor(np.ones(100))
    check.run(lambda: [getattr(planted, name)(ones) for name in ("vanishes", "breaks", "jumps")])
    found = {row["api_name"]: (row["kind"], float(row["max_rel"]), row["changed"]) for row in check.rows()}
    assert found == {
        "planted.vanishes": ("zero", 1.0, "1"),
        "planted.breaks": ("nan", float("inf"), "1"),
        "planted.jumps": ("change", 2.0, "1"),
    }


def test_a_sum_that_depends_on_the_order_of_its_terms_is_found(side: Side, check_of: Any) -> None:
    def naive(x: Any) -> Any:
        total = np.float16(0)
        for each in side.numpy(x):
            total = np.float16(total + each)
        return side.tensor([total], "float16")

    planted = _planted(sum=naive)
    check = check_of(side, pert_mode="exchange_value")
    check.debugger.register_custom_api(planted, "sum")
    check.run(lambda: planted.sum(side.tensor(np.r_[2048, np.ones(300)], "float16")))
    (row,) = check.rows()
    assert (row["api_name"], row[_title(side)]) == ("planted.sum", "exchange_value")
    assert float(row["max_rel"]) == pytest.approx(300 / 2348, rel=0.01)


def _title(side: Side) -> str:
    return "pert_type" if side.name == "mindspore" else "pert_mode"


def test_gradients_that_follow_noise_are_found(side: Side, check_of: Any) -> None:
    """The gradient of 1/(1-x) near 1 moves far more than x does; that of tanh does not."""
    near = side.tensor(1 - 1e-5 * (1 + np.random.default_rng(0).random(8)))

    def planted_function(x: Any) -> Any:
        return 1 / (1 - x)

    planted = _planted(pole=planted_function)
    check = check_of(side, pert_mode="add_noise", fuzz_stage="backward")
    check.debugger.register_custom_api(planted, "pole")
    found = check.run(lambda: side.gradient(lambda x: planted.pole(x) + side.api.tanh(x), near))[0]
    np.testing.assert_array_equal(found, side.gradient(lambda x: planted_function(x) + side.api.tanh(x), near))
    (row,) = check.rows()
    assert (row["api_name"], row["stage"]) == ("planted.pole", "backward")
    assert check.summary()[f"{side.title}.tanh"]["checked"] == "1"


# -- fix ---------------------------------------------------------------------------------------------------------------


def test_fix_gives_the_loss_of_float32_and_gradients_flow_through_it(side: Side, check_of: Any) -> None:
    def spread(x: Any) -> Any:
        return (x * x).mean() - x.mean() * x.mean()

    planted = _planted(spread=spread)
    values = 10 + np.random.default_rng(0).standard_normal(512)
    half, single = side.tensor(values, "float16"), side.tensor(np.float16(values))
    expected, slope = float(spread(single)), side.gradient(spread, single)
    assert abs(float(spread(half)) - expected) > 0.015 * expected
    with _logged() as lines:
        check = check_of(side, handler_type="fix", list=["nothing.else"])
        check.debugger.register_custom_api(planted, "spread")
        loss, gradient = check.run(lambda: planted.spread(half), lambda: side.gradient(planted.spread, half))
    assert str(loss.dtype).lower().endswith("float16")
    assert float(loss) == pytest.approx(expected, rel=1e-3)
    np.testing.assert_allclose(gradient, slope, rtol=0.05, atol=2e-5)
    assert check.summary()["planted.spread"]["fixed"] == "2"
    assert check.rows() == []
    assert any("the training is another" in line for line in lines)


class _logged:
    """Collects what is logged."""

    def __enter__(self) -> list[str]:
        self.lines: list[str] = []
        self._handler = logging.Handler()
        self._handler.emit = lambda record: self.lines.append(record.getMessage())  # type: ignore[method-assign]
        logger.addHandler(self._handler)
        return self.lines

    def __exit__(self, *raised: Any) -> None:
        logger.removeHandler(self._handler)


def test_that_nothing_was_checked_is_a_warning(side: Side, check_of: Any) -> None:
    with _logged() as lines:
        check = check_of(side, pert_mode="improve_precision")
        check.run(lambda: side.api.exp(side.tensor([1.0, 2.0])))
        check.debugger.end()
    assert check.summary()[f"{side.title}.exp"]["checked"] == "0"
    (said,) = [line for line in lines if "was checked" in line]
    assert said.endswith(
        "none of 1 calls was checked; free_benchmark_summary.csv says why. "
        "pert_mode add_noise may suit these tensors better"
    )


# -- the training does not notice --------------------------------------------------------------------------------------


def _state() -> list[bytes]:
    parts = [torch.get_rng_state().numpy().tobytes(), repr(random.getstate()).encode()]
    return [*parts, np.random.get_state()[1].tobytes()]  # type: ignore[union-attr, index]


def _hostile_torch() -> Iterator[tuple[str, Callable[[], Any]]]:
    x = torch.linspace(0.1, 2, 12).reshape(3, 4)
    own = torch.Generator().manual_seed(7)
    running = torch.zeros(4), torch.ones(4)
    weight = torch.full((5, 3), 3.0)
    yield "in place", lambda: x.clone().mul_(2).add_(x)
    yield "by an operator", lambda: torch.relu_(x.clone() - 1)
    yield "inplace=True", lambda: F.relu(x - 1, True)
    yield "out", lambda: torch.add(x, x, out=torch.empty(3, 4))
    yield "item", lambda: _with_item(x.clone())
    yield "dropout", lambda: F.dropout(x, 0.5)
    yield "own generator", lambda: torch.rand(3, generator=own) + torch.normal(x, x, generator=own).sum()
    yield "running", lambda: (F.batch_norm(x, *running, training=True), *running)
    yield "max_norm", lambda: (F.embedding(torch.tensor([1, 2]), weight, max_norm=1.0), weight)
    yield "view", lambda: _written_view(x.clone())
    yield "complex", lambda: torch.fft.fft(x) + torch.complex(x, x)
    yield "integers", lambda: torch.add(torch.arange(3), 2) + torch.arange(3) // 2
    yield "nested", lambda: torch.stack([*torch.meshgrid([x[0], x[1]], indexing="ij")])
    yield "named", lambda: torch.max(x, 1).values + torch.sort(x)[0].sum(1)
    yield "nothing", lambda: torch.empty(0, 3).matmul(torch.ones(3, 2))
    yield "shown often", lambda: torch.exp(torch.ones(1).expand(1000, 1000)).sum()
    yield "sparse", lambda: torch.matmul(x.to_sparse(), x.t())
    yield "half", lambda: torch.matmul(x.half(), x.half().t()) + torch.matmul(x.bfloat16(), x.bfloat16().t()).half()


def _with_item(x: torch.Tensor) -> torch.Tensor:
    x[0, 1] = 5
    x += 1
    return x


def _written_view(x: torch.Tensor) -> torch.Tensor:
    x.view(-1).add_(1)
    x.t()[0].zero_()
    return x


@pytest.mark.parametrize("stage", ["forward", "backward"])
@pytest.mark.parametrize("mode", ["add_noise", "improve_precision", "to_cpu", "no_change"])
def test_hostile_calls_of_pytorch_give_what_they_give(check_of: Any, mode: str, stage: str) -> None:
    def results() -> dict[str, list[bytes]]:
        torch.manual_seed(5)
        found = {}
        for name, call in _hostile_torch():
            given = call()
            several = given if isinstance(given, tuple) else (given,)
            found[name] = [each.detach().resolve_conj().to(torch.complex128).numpy().tobytes() for each in several]
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            torch.matmul(torch.ones(2, 3), torch.ones(2, 3))
        return found

    expected, state = results(), _state()
    check = check_of(SIDES["pytorch"], pert_mode=mode, fuzz_stage=stage, fuzz_args="all")
    assert check.run(results) == [expected]
    assert _state()[0] == state[0]
    assert check.rows() == []
    if stage == "forward" and mode == "no_change":
        summary = check.summary()
        left_out = {api: row["why"] for api, row in summary.items() if row["checked"] == "0"}
        assert summary["torch.nn.functional.dropout"]["checked"] == "1"
        assert summary["torch.Tensor.mul_"]["checked"] == "1"
        assert left_out["torch.rand"] == "no argument holds floating-point numbers: 1"
        assert "it raised" in summary["torch.matmul"]["why"]


def test_hooks_on_what_graphs_save_and_gradients_of_other_kinds(check_of: Any) -> None:
    saved: list[torch.Size] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        saved.append(tensor.shape)
        return tensor.detach()

    def train() -> int:
        saved.clear()
        weight = torch.ones(5, 3, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(pack, torch.Tensor.detach):
            (weight.flatten() * weight.flatten().exp()).sum().backward()
            bags = F.embedding_bag(torch.tensor([[1, 2]]), weight, sparse=True)
            (torch.ones(3, requires_grad=True).flatten() * bags).sum().backward()
        return len(saved)

    without = train()
    with _logged() as lines:
        check = check_of(SIDES["pytorch"], pert_mode="add_noise", fuzz_stage="backward")
        assert check.run(train) == [without]
    assert not [line for line in lines if "could not be checked" in line]
    assert check.summary()["torch.Tensor.exp"]["checked"] == "1"


def test_hostile_calls_of_mindspore_give_what_they_give(check_of: Any) -> None:
    x = mindspore.Tensor(np.linspace(0.1, 2, 12, dtype=np.float32).reshape(3, 4))

    def results() -> list[bytes]:
        kept = x.copy()
        kept[0, 1] = 5
        average = mindspore.Parameter(np.zeros(4, np.float32))
        variance = mindspore.Parameter(np.ones(4, np.float32))
        ones, zeros = ops.ones(4, mindspore.float32), ops.zeros(4, mindspore.float32)
        normal = ops.batch_norm(x, average, variance, ones, zeros, training=True)
        ops.assign(variance, ones * 3)
        found = [kept, normal, average, variance, ops.stack([x, x]), ops.cat((x, kept)), ops.topk(x, 2)[0]]
        with pytest.raises((ValueError, RuntimeError)):
            ops.matmul(x, x).asnumpy()
        return [each.asnumpy().tobytes() for each in [*found, ops.cast(x, mindspore.float16) * 3]]

    expected, state = results(), _state()
    for mode in ("add_noise", "no_change", "to_cpu"):
        check = check_of(SIDES["mindspore"], pert_mode=mode, fuzz_args="all")
        assert check.run(results) == [expected]
        assert check.rows() == []
    assert _state() == state


def test_errors_of_the_check_are_counted_and_said_once(side: Side, check_of: Any) -> None:
    def fails(x: Any, first: bool) -> Any:
        if not first:
            raise ValueError("only once")
        return x

    planted = _planted(fails=lambda x: fails(x, next(turns)))
    turns = iter([True, False] * 4)
    check = check_of(side, pert_mode="add_noise")
    check.debugger.register_custom_api(planted, "fails")
    x = side.tensor(np.ones(3))
    with _logged() as lines:
        (given,) = check.run(lambda: [planted.fails(x) for _ in range(4)])
    assert all(each is x for each in given)
    assert sum("only once" in line for line in lines) == 1
    row = check.summary()["planted.fails"]
    assert (row["calls"], row["checked"], row["left_out"], row["why"]) == ("4", "0", "4", "ValueError: only once: 4")


@pytest.mark.parametrize(
    ("error", "stage"),
    [
        (MemoryError, "forward"), (KeyboardInterrupt, "backward"),
        thorough((MemoryError, "backward")), thorough((KeyboardInterrupt, "forward")),
    ],
)  # fmt: skip
def test_what_is_raised_in_a_check_is_the_trainings_only_if_it_is_an_interrupt(
    side: Side, check_of: Any, error: type[BaseException], stage: str
) -> None:
    """At any line; and the next step is checked as any."""
    x = side.tensor([1.5, 2, 3])

    def train() -> list[float]:
        return side.gradient(lambda value: side.api.exp(value) * value, x).tolist()

    def surveyed() -> None:
        with survey:
            train()

    def interrupted() -> Any:
        with interruption:
            return train()

    check = check_of(side, {}, fuzz_stage=stage, pert_mode="add_noise")
    expected = train()
    survey = Survey(error, after_calls=False)
    check.run(train, surveyed)
    # A trial of MindSpore takes seven times as long; most of these lines run for both frameworks.
    stride = {"forward": 7, "backward": 15}[stage] * {"pytorch": 1, "mindspore": 5}[side.name]
    for place in survey.chosen(1)[::stride]:
        interruption = Interruption(error, place)
        try:
            assert check.run(interrupted) == [expected] and error is not KeyboardInterrupt, place
        except error:
            assert error is KeyboardInterrupt, place
            if side.name == "mindspore":  # which an interrupted backward leaves recording, with the tool and without
                mindspore.common.api._pynative_executor.clear_res()
    before = sum(int(row["checked"]) for row in check.summary().values())
    assert check.run(train) == [expected]
    assert sum(int(row["checked"]) for row in check.summary().values()) > before


def test_calls_that_no_backward_follows_hold_nothing(check_of: Any) -> None:
    """As those of an evaluation: what they were given goes with them."""
    check = check_of(SIDES["pytorch"], {}, fuzz_stage="backward", pert_mode="add_noise")
    weight, given = torch.ones(2, 2, requires_grad=True), []

    def evaluate() -> None:
        for _ in range(4):
            x = torch.ones(2, 2)
            given.append(weakref.ref(x.untyped_storage()))
            result = torch.exp(torch.matmul(x, weight))
            del x, result
            assert given[-1]() is None

    check.run(evaluate)
    assert check.summary()["torch.matmul"]["why"] == "no gradient came: 4"


def test_the_result_is_the_very_object_that_the_call_gave(side: Side, check_of: Any) -> None:
    given: list[Any] = []

    def give(x: Any) -> Any:
        given.append(x * 2)
        return given[-1]

    planted = _planted(give=give)
    check = check_of(side, pert_mode="add_noise")
    check.debugger.register_custom_api(planted, "give")
    (result,) = check.run(lambda: planted.give(side.tensor([1.0])))
    assert result is given[0] and len(given) == 2


# -- what is selected --------------------------------------------------------------------------------------------------


def test_the_list_selects_and_names_that_stand_for_nothing_are_said(side: Side, check_of: Any) -> None:
    names = [f"{side.title}.matmul", "tanh", f"{side.title}.matmull"]
    with _logged() as lines:
        check = check_of(side, pert_mode="add_noise", list=names)
    assert any("matmull" in line and f'did you mean "{side.title}.matmul"' in line for line in lines)
    x = side.tensor(np.eye(3))
    check.run(lambda: side.api.tanh(side.api.exp(side.api.matmul(x, x))))
    found = check.summary()
    assert {name for name, row in found.items() if row["calls"] != "0"} == {
        f"{side.title}.matmul",
        f"{side.title}.tanh",
    }
    assert "no API" in found[f"{side.title}.matmull"]["why"]


def test_steps_ranks_and_scope(side: Side, check_of: Any) -> None:
    scope = ["Functional.tanh.1.forward"] * 2 if side.name == "mindspore" else ["Torch.tanh.1.forward"] * 2
    check = check_of(side, {"step": [1], "rank": [0]}, pert_mode="add_noise", scope=scope)
    x = side.tensor(np.ones(3))
    check.run(*[lambda: [side.api.tanh(x) for _ in range(3)]] * 3)
    row = check.summary()[f"{side.title}.tanh"]
    assert (row["calls"], row["checked"], row["why"]) == ("3", "1", "outside of the scope: 2")


def test_columns_are_those_of_msprobe_and_rows_are_appended(side: Side, check_of: Any, tmp_path: Path) -> None:
    columns = [_title(side) if name == "pert_type" else name for name in COLUMNS]
    for run in (1, 2):
        check = check_of(side, pert_mode="add_noise", fuzz_level="L1", fuzz_device="npu")
        check.run(lambda: _cancels(side))
        rows = check.rows()
        assert len(rows) == run and list(rows[0]) == columns + OWN
        assert rows[0]["shape"] == "(16,)" and rows[0]["output_index"] == "" and rows[0]["stage"] == "forward"
        check.debugger.retire()
    (tmp_path / "out" / "free_benchmark.csv").write_text("of,another,tool\n")
    check = check_of(side, pert_mode="add_noise")
    check.run(lambda: _cancels(side))
    assert (tmp_path / "out" / "free_benchmark.csv").read_text() == "of,another,tool\n"
    assert len(_rows(tmp_path / "out" / "free_benchmark_1.csv")) == 1


def test_preheating_counts_then_compares_a_sample_with_the_cpu(check_of: Any) -> None:
    check = check_of(SIDES["pytorch"], pert_mode="add_noise", if_preheat=True, preheat_step=2, max_sample=3)
    x = torch.linspace(1, 2, 8)
    check.run(*[lambda: [torch.exp(x) for _ in range(4)]] * 4)
    row = check.summary()["torch.exp"]
    # None in step 0, half of four in each of the next two, and then all.
    assert (row["calls"], row["checked"]) == ("16", "8")
    assert row["why"] == "not in the sample of preheating: 8"


def test_compiled_graphs_are_refused(check_of: Any) -> None:
    mindspore.set_context(mode=mindspore.GRAPH_MODE)
    try:
        with pytest.raises(UsageError, match="does not check compiled graphs"):
            check_of(SIDES["mindspore"])
    finally:
        mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
