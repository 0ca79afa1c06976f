"""A fused projection beside its parts: healthy nets are consistent, and faults are found where they were made."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from compare_parts import dump, tensor
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

import msprobe_ms.pytorch
from msprobe_ms.comparison.model import Origin
from msprobe_ms.comparison.node.report import node_report
from msprobe_ms.comparison.origin.sentences import name_fused_parts, relative_error
from msprobe_ms.comparison.pairing.fused_modules import join_fused
from msprobe_ms.comparison.pairing.fused_tensors import Arrangement, arrangement
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.comparison.reporting.files import summary
from msprobe_ms.comparison.reporting.terminal import verdict_lines
from msprobe_ms.comparison.run import Options, Outcome, compare_dumps
from msprobe_ms.dump.model import Dump
from msprobe_ms.dump.reading.items import TensorSource
from msprobe_ms.dump.reading.locate import find_dumps
from msprobe_ms.dump.reading.reader import read_dump

WIDTH, HEADS = 16, 4
#: Lengths of q, k and v: grouped keys and values.
LENGTHS = (16, 8, 8)
FUSED_THERE = Mappings(layer={"Attention": {"q + k + v": "qkv"}})
FUSED_HERE = Mappings(layer={"Attention": {"qkv": "q + k + v"}})


class Attention(nn.Module):
    """``qkv`` as one, or ``q``, ``k`` and ``v``; ``interleaved``: a share of each for every pair of heads."""

    def __init__(self, fused: bool, interleaved: bool = False) -> None:
        super().__init__()
        if fused:
            self.qkv = nn.Linear(WIDTH, sum(LENGTHS))
        else:
            self.q, self.k, self.v = (nn.Linear(WIDTH, length) for length in LENGTHS)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.fused, self.interleaved = fused, interleaved
        #: What is done to q, k and v behind the projection.
        self.between: Callable[[Sequence[Tensor]], Sequence[Tensor]] = tuple

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.between(self.projected(x))
        q, k, v = (each.unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2) for each in (q, k, v))
        k, v = (each.repeat_interleave(2, 1) for each in (k, v))
        return self.out((torch.softmax(q @ k.transpose(2, 3) / 2, -1) @ v).transpose(1, 2).flatten(2))

    def projected(self, x: Tensor) -> Sequence[Tensor]:
        if not self.fused:
            return self.q(x), self.k(x), self.v(x)
        if not self.interleaved:
            return self.qkv(x).split(LENGTHS, -1)
        groups = self.qkv(x).unflatten(-1, (2, -1))
        return [each.flatten(-2) for each in groups.split([length // 2 for length in LENGTHS], -1)]


class Net(nn.Module):
    def __init__(self, fused: bool, interleaved: bool = False) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.norm = nn.LayerNorm(WIDTH)
        self.attention = Attention(False)
        self.head = nn.Linear(WIDTH, 4)
        if fused:
            parts = self.attention
            self.attention = Attention(True, interleaved)
            self.attention.out = parts.out
            for name in ("weight", "bias"):
                each = [getattr(part, name) for part in (parts.q, parts.k, parts.v)]
                shares = [half for group in range(2) for half in (part.chunk(2)[group] for part in each)]
                getattr(self.attention.qkv, name).data.copy_(torch.cat(shares if interleaved else each))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.attention(self.norm(x)))


def recorded(folder: Path, net: Net, task: str = "tensor", level: str = "L0") -> Dump:
    torch.manual_seed(2)
    with msprobe_ms.pytorch.record(net, level=level, task=task, dump_path=folder):
        net(torch.randn(2, 6, WIDTH)).square().sum().backward()
    (path,) = find_dumps(folder).values()
    return read_dump(path)


Call = tuple[str, dict[str, np.ndarray]]


def written(
    folder: Path, calls: Sequence[Call], task: str = "tensor", files: dict[str, np.ndarray] | None = None
) -> Dump:
    """A dump of these calls; ``files`` hold something else than was recorded."""
    (folder / "dump_tensor_data").mkdir(parents=True)
    data: dict[str, dict] = {}
    for name, values in calls:
        inputs = "input" if ".backward." in name else "input_args"
        data[name] = {inputs: [], "output": [], "parameters": {}}
        for place, value in values.items():
            state, _, rest = place.partition(".")
            leaf = {"type": "torch.Tensor", "dtype": f"torch.{value.dtype}", "shape": list(value.shape)}
            if value.size and value.dtype.kind != "c":
                exact = value.astype(np.float64)
                norm = float(np.linalg.norm(exact))
                leaf |= {
                    "Max": float(exact.max()),
                    "Min": float(exact.min()),
                    "Mean": float(exact.mean()),
                    "Norm": norm,
                }
            if task == "tensor":
                leaf["data_name"] = f"{name}.{place}.npy"
                np.save(folder / "dump_tensor_data" / leaf["data_name"], (files or {}).get(f"{name}.{place}", value))
            if state == "parameters":
                data[name][state][rest] = leaf
            else:
                data[name][inputs if state == "input" else state].append(leaf)
    index = {"task": task, "level": "L0", "framework": "pytorch", "data": data}
    (folder / "dump.json").write_text(json.dumps(index), "utf-8")
    (folder / "construct.json").write_text(json.dumps(dict.fromkeys(data)), "utf-8")
    return read_dump(folder)


class Twice(torch.autograd.Function):
    """The same forward, twice the gradient."""

    @staticmethod
    def forward(context, value):
        return value.view_as(value)

    @staticmethod
    def backward(context, gradient):
        return 2 * gradient


def more(amount: float) -> Callable[[nn.Module], None]:
    """Change the rows of k, which are 16 to 24 of the fused ones."""

    def change(net: Net) -> None:
        attention = net.attention
        weight = attention.qkv.weight.data[16:24] if attention.fused else attention.k.weight.data
        weight.mul_(amount)

    return change


def behind(change: Callable[[Tensor], Tensor]) -> Callable[[Net], None]:
    """Change k on its way into the attention."""

    def apply(net: Net) -> None:
        net.attention.between = lambda each: (each[0], change(each[1]), each[2])

    return apply


def scaled(net: Net) -> None:
    """The projection itself computes something else from right weights."""
    projection = net.attention.qkv if net.attention.fused else net.attention.k
    compute = projection.forward
    projection.forward = lambda x: compute(x) * 1.01


FAULTS = {
    "weight": (more(1.5), ".forward.0.parameters.weight"),
    "scale": (scaled, ".forward.0.output.0"),
    "behind": (behind(lambda k: k * 1.01), "Attention.forward.0.output.0"),
}


def outcome(target: Dump, golden: Dump, mappings: Mappings | None = None) -> Outcome:
    options = Options(align=True) if mappings is None else Options(mappings=mappings)
    return Outcome("", target, golden, compare_dumps(target, golden, options), [])


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bool, str, str], Dump]:
    made: dict[tuple[bool, str, str], Dump] = {}

    def of(fused: bool, task: str, level: str = "L0") -> Dump:
        key = (fused, task, level)
        if key not in made:
            made[key] = recorded(tmp_path_factory.mktemp("healthy"), Net(fused), task, level)
        return made[key]

    return of


@pytest.mark.parametrize("level", ["L0", "mix"])
@pytest.mark.parametrize("task", ["statistics", "tensor"])
@pytest.mark.parametrize("fused", [True, False])
def test_healthy_nets_are_consistent_wholly(healthy, fused: bool, task: str, level: str) -> None:
    target, golden = healthy(fused, task, level), healthy(not fused, task, level)
    for mappings in (None, FUSED_HERE if fused else FUSED_THERE):
        found = outcome(target, golden, mappings)
        assert found.comparison.verdict == "consistent"
        one, several = "attention.qkv", "attention.q + k + v"
        sides = f"{one} = {several}" if fused else f"{several} = {one}"
        lines = list(verdict_lines(found))
        assert f"fused on one side and compared as one: {sides}" in lines
        assert not any(line.startswith("modules only") for line in lines)
        (told,) = summary(found.comparison)["fused"]  # type: ignore[misc]
        assert f"{told['target']} = {told['golden']}" == sides
        lost = [name.partition(".Linear.")[2] for name in told["not_compared"]]
        assert (told["values"], lost) == (8, [] if task == "tensor" else ["backward.0.output.0"])


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("task", ["statistics", "tensor"])
@pytest.mark.parametrize("fused", [True, False])
def test_a_fault_is_found_where_it_was_made(healthy, tmp_path: Path, fused: bool, task: str, fault: str) -> None:
    plant, place = FAULTS[fault]
    net = Net(fused)
    plant(net)
    found = outcome(recorded(tmp_path, net, task), healthy(not fused, task))
    origin = found.comparison.origins[0]
    told = "; ".join((origin.target, origin.reason, *origin.details))
    assert origin.target.endswith(place) and f"attention.{'qkv' if fused else 'q + k + v'}" in told
    if fault == "behind":
        assert "attention.out.Linear.forward.0.input.0" in told
    elif task == "tensor":
        assert ("of 3 fused only k differs" in origin.details) == (fault == "weight" or not fused)


@pytest.mark.parametrize("task", ["statistics", "tensor"])
@pytest.mark.parametrize("fused", [True, False])
def test_a_wrong_gradient_behind_it_is_found_in_backward(healthy, tmp_path: Path, fused: bool, task: str) -> None:
    net = Net(fused)
    behind(Twice.apply)(net)
    (origin, *_) = outcome(recorded(tmp_path, net, task), healthy(not fused, task)).comparison.origins
    assert "attention" in origin.target and ".backward.0." in origin.target
    told = "; ".join((origin.target, origin.reason, *origin.details))
    assert f"attention.{'qkv' if fused else 'q + k + v'}.Linear.backward.0.input.0" in told


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_a_gradient_lost_behind_one_part_is_missed(healthy, tmp_path: Path, task: str) -> None:
    net = Net(False)
    behind(Tensor.detach)(net)
    missing, *others = outcome(recorded(tmp_path, net, task), healthy(True, task)).comparison.origins
    assert missing.kind == "missing gradient" and ".attention.q + k + v.Linear." in missing.target
    assert missing.details[0] == "of the layers that are fused on the other side, q, v have a gradient"
    # What the attention hands back lacks the same branch.
    assert "Module.attention.Attention.backward.0.output.0" not in [each.target for each in others]


def test_interleaved_rows_are_found(healthy, tmp_path: Path) -> None:
    """A share of q, k and v for each group of heads, as Megatron has it; a fault among them as well."""
    parts = healthy(False, "tensor")
    found = outcome(recorded(tmp_path / "fused", Net(True, interleaved=True)), parts).comparison
    assert found.verdict == "consistent"
    assert max(row.deviation or 0.0 for pair in found.pairs if pair.fused for row in pair.rows) < 1e-6
    net = Net(True, interleaved=True)
    net.attention.qkv.weight.data[8:12].mul_(1.5)
    (origin, *_) = outcome(recorded(tmp_path / "faulty", net), parts).comparison.origins
    assert origin.details[0] == "of 3 fused only k differs"


def test_other_processes_need_not_find_the_order_again(healthy, tmp_path: Path) -> None:
    whole = recorded(tmp_path, Net(True, interleaved=True))
    _, theirs = join_fused(whole, healthy(False, "tensor"), FUSED_HERE)
    (item,) = theirs.entries["Module.attention.q + k + v.Linear.forward.0"].in_state("output")
    sent = pickle.loads(pickle.dumps(theirs.tensors))
    (tmp_path / "step0").rename(tmp_path / "moved")
    output = whole.entries["Module.attention.qkv.Linear.forward.0"].items[1]
    wanted = TensorSource(next((tmp_path / "moved").iterdir())).load(output)
    np.testing.assert_allclose(sent.load(item), wanted, atol=1e-5)


def test_rows_in_no_known_order_leave_the_figures(healthy, tmp_path: Path) -> None:
    net = Net(True)
    order = torch.randperm(sum(LENGTHS))
    for values in (net.attention.qkv.weight, net.attention.qkv.bias):
        values.data.copy_(values.data[order])
    found = outcome(recorded(tmp_path, net), healthy(False, "tensor"), FUSED_HERE)
    lines = list(verdict_lines(found))
    assert "nothing tells in which order the other side has these rows" in "\n".join(lines)
    rows = {row.target.name: row for row in found.comparison.rows if row.target is not None}
    assert (rows["Module.attention.qkv.Linear.forward.0.parameters.weight"].deviation or 0.0) < 1e-6


def test_a_node_is_told_by_the_name_of_a_part(healthy) -> None:
    target, golden = healthy(False, "tensor"), healthy(True, "tensor")
    for name in ("attention.k", "Module.attention.k.Linear", "Module.attention.k.Linear.forward.0"):
        report = node_report(target.path, golden.path, name, Options(align=True))
        assert report.node == "Module.attention.q + k + v.Linear.forward.0"
    report = node_report(target.path, golden.path, "Module.attention.k.Linear.forward.0.output.0", Options(align=True))
    assert report.lines[0] == "Module.attention.q + k + v.Linear.forward.0.output.0" and not report.differs


@pytest.mark.parametrize("task", ["statistics", "tensor"])
@pytest.mark.parametrize("backward_alone", [False, True])
def test_gradients_of_parts_that_take_in_others_are_not_joined(tmp_path: Path, task: str, backward_alone: bool) -> None:
    """Cross attention: k and v take in what q does not, and hand back gradients of another shape."""

    def calls(names: Sequence[str], forward: Sequence[int], width: int) -> list[Call]:
        made: list[Call] = [] if backward_alone else [
            (f"Module.a.{name}.Linear.forward.0", {"input.0": np.ones((rows, 4)), "output.0": np.ones((rows, width))})
            for name, rows in zip(names, forward, strict=True)
        ]  # fmt: skip
        return made + [
            (f"Module.a.{name}.Linear.backward.0", {"input.0": np.ones((rows, width)), "output.0": np.ones((rows, 4))})
            for name, rows in zip(names, forward, strict=True)
        ]

    parts = written(tmp_path / "parts", calls("qkv", (2, 3, 3), 8), task)
    whole = written(tmp_path / "whole", calls(["qkv"], (2,), 24), task)
    mappings = Mappings(layer={"a": {"q + k + v": "qkv"}})
    for target, golden, said in ((parts, whole, mappings), (whole, parts, Mappings(layer={"a": {"qkv": "q + k + v"}}))):
        ours, theirs = join_fused(target, golden, said)
        assert not any("+" in name for dump in (ours, theirs) for name in dump.entries)
        outcome(target, golden, said)


@pytest.mark.parametrize("shape", [(), (32,), (5, 4), (8, 3), (8, 2, 4), (8, 1, 4)])
@pytest.mark.parametrize("state", ["parameters.weight", "output.0"])
def test_the_file_of_a_part_in_another_shape_than_recorded_is_told(
    tmp_path: Path, shape: tuple[int, ...], state: str
) -> None:
    random = np.random.default_rng(3)
    x, weights = random.standard_normal((8, 4)), random.standard_normal((3, 8, 4))
    given = {"parameters.weight": weights, "output.0": random.standard_normal((3, 8, 4))}

    def call(name: str, of: Callable[[np.ndarray], np.ndarray]) -> Call:
        return f"Module.a.{name}.Linear.forward.0", {"input.0": x, **{place: of(each) for place, each in given.items()}}

    k = given[state][1]
    wrong = {f"Module.a.k.Linear.forward.0.{state}": k.reshape(shape) if k.size == math.prod(shape) else np.ones(shape)}
    parts = [call(name, lambda each, at=number: each[at]) for number, name in enumerate("qkv")]
    target = written(tmp_path / "parts", parts, files=wrong)
    golden = written(tmp_path / "whole", [call("qkv", np.concatenate)])
    found = outcome(target, golden, Mappings(layer={"a": {"q + k + v": "qkv"}}))
    (row,) = [row for row in found.comparison.rows if row.target is not None and row.target.name.endswith(state)]
    if shape == (8, 1, 4):
        assert row.deviation == 0.0 and not row.metrics.get("note")
    else:
        note = str(row.metrics["note"])
        assert note.startswith("Real data not compared, as a file contradicts dump.json: ")
        assert note.endswith(f"k.Linear.forward.0.{state}.npy: it has shape {list(shape)}, recorded is [8, 4]")


@pytest.mark.parametrize(
    ("shapes", "whole", "axis"),
    [(((0, 4), (3, 4)), (3, 4), 0), (((2, 0), (2, 0)), (4, 0), 0), (((0, 4), (0, 4)), (0, 4), 0),
     (((2, 0), (2, 3)), (2, 3), 1)],
)  # fmt: skip
def test_parts_without_elements_are_put_together(
    shapes: Sequence[tuple[int, int]], whole: tuple[int, int], axis: int
) -> None:
    parts = [np.arange(math.prod(shape), dtype=np.float64).reshape(shape) for shape in shapes]
    expected = np.concatenate(parts, axis)
    found = arrangement(parts, expected, axis)
    assert found is not None and expected.shape == whole
    np.testing.assert_array_equal(found.join(parts, axis), expected)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", [np.float64, np.complex64, np.float16])
@pytest.mark.parametrize(("scale", "odd"), [(1.0, 0.0), (1e300, 0.0), (1.0, math.inf), (1.0, math.nan)])
def test_rows_of_any_numbers_are_told_in_silence(dtype: type, scale: float, odd: float) -> None:
    random = np.random.default_rng(6)
    wide = scale * random.standard_normal((3, 8, 4)) if dtype is np.float64 else random.standard_normal((3, 8, 4))
    parts = list((wide * (1 + 1j) if dtype is np.complex64 else wide).astype(dtype))
    parts[1][2, 3] += odd
    whole = Arrangement((2, 0, 1), 4).join(parts, 0)
    assert arrangement(parts, whole, 0) == Arrangement((2, 0, 1), 4)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("number", [1.0, 1e300, 1e-300, math.inf, math.nan])
def test_errors_of_parts_are_told_in_silence(number: float) -> None:
    golden = np.full(4, number) if math.isfinite(number) else np.array([1.0, 1.0, 1.0, number])
    assert relative_error(golden, golden) == 0.0
    target = golden * np.array([1.0, 1.0, 1.01, 1.0])
    assert 0.001 < relative_error(target, golden) < 0.01


def test_an_empty_batch_is_compared(tmp_path: Path) -> None:
    empty, weight = np.zeros((0, 4)), np.random.default_rng(4).standard_normal((3, 8, 4))
    parts = [
        (f"Module.a.{name}.Linear.forward.0", {"input.0": empty, "parameters.weight": each, "output.0": empty[:, :2]})
        for name, each in zip("qkv", weight, strict=True)
    ]
    values = {"input.0": empty, "parameters.weight": np.concatenate(weight), "output.0": np.zeros((0, 6))}
    whole = [("Module.a.qkv.Linear.forward.0", values)]
    both = written(tmp_path / "parts", parts), written(tmp_path / "whole", whole)
    found = outcome(*both, Mappings(layer={"a": {"q + k + v": "qkv"}})).comparison
    assert not found.origins and not any(row.metrics.get("note") for row in found.rows)


@pytest.mark.parametrize(("there", "told"), [(False, "q and k differ"), (True, "k differs")])
def test_a_part_with_nan_that_the_other_side_has_not_differs(tmp_path: Path, there: bool, told: str) -> None:
    random = np.random.default_rng(5)
    whole, out = random.standard_normal((24, 4)), random.standard_normal((2, 24))
    q, k, v = (each.copy() for each in np.split(whole, 3))
    q[0, 0], k[:] = math.nan, 1.5 * k
    whole[0, 0] = math.nan if there else whole[0, 0]
    target = written(tmp_path / "parts", [
        (f"Module.a.{name}.Linear.forward.0", {"parameters.weight": weight, "output.0": given})
        for name, weight, given in zip("qkv", (q, k, v), np.split(out, 3, 1), strict=True)
    ])  # fmt: skip
    call = ("Module.a.qkv.Linear.forward.0", {"parameters.weight": whole, "output.0": out})
    golden = written(tmp_path / "whole", [call])
    mappings = Mappings(layer={"a": {"q + k + v": "qkv"}})
    parts, fused = join_fused(target, golden, mappings)
    pairs = compare_dumps(target, golden, Options(mappings=mappings)).pairs
    origin = Origin("Module.a.q + k + v.Linear.forward.0.parameters.weight", "", "", "", {})
    (row,) = (row for each in pairs for row in each.rows if row.state == "parameters")
    row.deviation, row.tolerance = math.nan, 1e-3
    (found,) = name_fused_parts([origin], pairs, parts, fused)
    assert found.details == (f"of 3 fused only {told}",)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.complex64, np.uint8, bool])
def test_shares_of_a_gradient_are_summed_in_full_precision(tmp_path: Path, dtype: type) -> None:
    share = np.full((2, 4), 30000).astype(dtype) if dtype is not np.uint8 else np.full((2, 4), 200, dtype)
    shares = [(f"Module.a.{name}.Linear.backward.0", {"input.0": np.ones((2, 8)), "output.0": share}) for name in "vkq"]
    total = 3 * share.astype(np.complex128 if share.dtype.kind == "c" else np.float64)
    call = ("Module.a.qkv.Linear.backward.0", {"input.0": np.ones((2, 24)), "output.0": total})
    both = written(tmp_path / "parts", shares), written(tmp_path / "whole", [call])
    ours, _ = join_fused(*both, Mappings(layer={"a": {"q + k + v": "qkv"}}))
    (item,) = ours.entries["Module.a.q + k + v.Linear.backward.0"].in_state("output")
    found = ours.tensors.load(item)
    np.testing.assert_array_equal(found, total)
    assert found.dtype == (dtype if dtype in (np.float32, np.complex64) else np.float64)


arrays = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=6)


@given(st.lists(arrays, min_size=2, max_size=4))
def test_figures_of_joined_tensors_are_those_of_the_concatenation(parts: list[list[float]]) -> None:
    def call(name: str, values: list[float]) -> list:
        whole = f"Cell.a.{name}.Dense.forward.0"
        return [tensor("input.0", [1.0], whole), tensor("output.0", np.array(values), whole)]

    names = [f"p{number}" for number in range(len(parts))]
    target = dump([item for name, values in zip(names, parts, strict=True) for item in call(name, values)])
    joined = [value for values in parts for value in values]
    golden = dump(call("whole", joined))
    rule = {"a": {" + ".join(names): "whole"}}
    ours, theirs = join_fused(target, golden, Mappings(layer=rule))
    (made,) = ours.entries.values()
    exact = golden.entries["Cell.a.whole.Dense.forward.0"].items[1]
    item = made.items[1]
    assert theirs is golden and item.shape == exact.shape
    assert (item.maximum, item.minimum) == (exact.maximum, exact.minimum)
    assert item.mean == pytest.approx(exact.mean, abs=1e-9) and item.norm == pytest.approx(exact.norm, abs=1e-9)


def test_many_calls_are_joined_in_their_order() -> None:
    calls = range(300)
    target = dump([tensor("output.0", [1.0], f"Cell.a.{part}.Dense.forward.{call}") for call in calls for part in "pq"])
    golden = dump([tensor("output.0", [1.0, 1.0], f"Cell.a.pq.Dense.forward.{call}") for call in calls])
    ours, _ = join_fused(target, golden, Mappings(layer={"a": {"p + q": "pq"}}))
    assert list(ours.entries) == [f"Cell.a.p + q.Dense.forward.{call}" for call in calls]
