"""Each row's deviation: relative to the tensor's own scale, 0 for equals, above the tolerance for real faults."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compare_parts import DATA, dump, null, scale_against_good, side_by_side, tensor, value
from hypothesis import given
from hypothesis import strategies as st

from msprobe_ms.arrays.metrics import COSINE, MAX_ABSOLUTE, TENSOR_METRICS, Missing
from msprobe_ms.comparison.measuring.deviation import statistic_deviation
from msprobe_ms.comparison.measuring.measure import measure
from msprobe_ms.comparison.measuring.tensors import NOTE
from msprobe_ms.comparison.model import Row
from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import Mappings, load_mappings
from msprobe_ms.dump.model import Dump, Item
from msprobe_ms.dump.reading.reader import read_dump


def measured(
    target: Item | None, golden: Item | None, mode: str = "statistics", frameworks: tuple[str, str] = ("mindspore",) * 2
) -> Row:
    one = side_by_side((target, golden))
    measure([one], dump([], frameworks[0]), dump([], frameworks[1]), mode)
    return one.rows[0]


CROSS = ("mindspore", "pytorch")


def gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def tanh_gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def test_statistics_metrics_are_signed_differences_and_relative_errors() -> None:
    row = measured(tensor("output.0", [1.0, 4.0]), tensor("output.0", [2.0, 0.0]))
    assert row.metrics["max_difference"] == 2.0
    assert row.metrics["max_relative"] == 1.0
    assert row.metrics["min_difference"] == 1.0
    assert row.metrics["min_relative"] == math.inf
    assert row.metrics["mean_difference"] == 1.5
    assert row.metrics["mean_relative"] == 1.5
    assert row.metrics["norm_difference"] == pytest.approx(math.sqrt(17) - 2)


def test_cancelled_mean_is_no_deviation() -> None:
    """A mean of 1e-9 beside one of -2e-9 is rounding where the elements are of size 1."""
    golden = tensor("output.0", np.random.standard_normal((64, 64)).astype(np.float32))
    row = measured(*(tensor("output.0", np.ones(1), **_figures(golden, mean=mean)) for mean in (1e-9, -2e-9)))
    assert row.metrics["mean_relative"] == pytest.approx(1.5)
    assert row.deviation is not None
    assert row.deviation < 1e-8
    assert not row.differs


def _figures(item: Item, **changed: float) -> dict[str, Any]:
    names = ("maximum", "minimum", "mean", "norm", "shape", "dtype")
    return {**{name: getattr(item, name) for name in names}, **changed}


@given(st.floats(1e-30, 1e30), st.integers(0, 2**32 - 1))
def test_deviation_does_not_depend_on_scale(scale: float, seed: int) -> None:
    """One bound serves a loss and the smallest gradient."""
    random = np.random.default_rng(seed)
    golden, error = random.standard_normal((2, 30))
    target = golden + 1e-3 * error

    def deviation(factor: float) -> float:
        found = statistic_deviation(tensor("output.0", target * factor), tensor("output.0", golden * factor))
        assert found is not None
        return found

    assert deviation(scale) == pytest.approx(deviation(1.0), rel=1e-6)


@pytest.mark.parametrize("mode", ["statistics", "tensor"])
def test_tanh_gelu_for_exact_gelu_differs(tmp_path: Path, mode: str) -> None:
    x = np.random.standard_normal((8, 32, 64))
    row = _real(tmp_path, tanh_gelu(x).astype(np.float32), gelu(x).astype(np.float32), mode)
    assert row.differs


@pytest.mark.parametrize("mode", ["statistics", "tensor"])
def test_float_noise_does_not_differ(tmp_path: Path, mode: str) -> None:
    """Sums in another order, as another framework's kernels do them."""
    a, b = np.random.standard_normal((2, 256, 256)).astype(np.float32)
    order = np.random.permutation(256)
    row = _real(tmp_path, a[:, order] @ b[order], a @ b, mode)
    assert row.deviation is not None
    assert row.deviation > 0
    assert not row.differs


def _real(folder: Path, target: np.ndarray, golden: np.ndarray, mode: str, **changed: Any) -> Row:
    """A row of two files on disk."""
    pairs = []
    for side, array in (("target", target), ("golden", golden)):
        (folder / side / "dump_tensor_data").mkdir(parents=True, exist_ok=True)
        item = tensor("output.0", array, **changed)
        np.save(folder / side / "dump_tensor_data" / str(item.data_name), array)
        pairs.append((item, dump([item], folder=folder / side)))
    (one, left), (other, right) = pairs
    both = side_by_side((one, other))
    measure([both], left, right, mode)
    return both.rows[0]


def test_tensor_deviation_is_relative_l2(tmp_path: Path) -> None:
    golden = np.random.standard_normal((20, 30)).astype(np.float32)
    target = golden * np.float32(1.01)
    row = _real(tmp_path, target, golden, "tensor")
    exact = np.linalg.norm(target.astype(float) - golden) / np.linalg.norm(golden.astype(float))
    assert row.deviation == pytest.approx(exact, rel=1e-6)
    assert row.metrics[MAX_ABSOLUTE] == np.abs(target.astype(float) - golden).max()


def test_transposed_tensor_differs_in_real_data_only(tmp_path: Path) -> None:
    golden = np.random.standard_normal((16, 16)).astype(np.float32)
    assert _real(tmp_path, golden.T.copy(), golden, "tensor").differs
    assert not _real(tmp_path, golden.T.copy(), golden, "statistics").differs


def test_integers_and_bools_must_be_equal_in_real_data(tmp_path: Path) -> None:
    ids = np.arange(100_000)
    other = ids.copy()
    other[5] += 1
    assert not _real(tmp_path, ids, ids.copy(), "tensor").differs
    assert _real(tmp_path, other, ids, "tensor").differs
    mask = np.ones(10_000, bool)
    flipped = mask.copy()
    flipped[7] = False
    assert _real(tmp_path, flipped, mask, "tensor").differs


def test_missing_file_falls_back_to_statistics_and_says_so(tmp_path: Path) -> None:
    array = np.ones(3, np.float32)
    items = [tensor("output.0", array), tensor("output.0", array * 2)]
    sides = [dump([item], folder=tmp_path) for item in items]
    both = side_by_side((items[0], items[1]))
    measure([both], *sides, "tensor")
    row = both.rows[0]
    assert row.deviation == 0.5
    assert row.differs
    assert row.metrics[COSINE] is Missing.NO_DATA
    assert str(tmp_path) in str(row.metrics[NOTE])


def test_damaged_file_falls_back_to_statistics(tmp_path: Path) -> None:
    array = np.ones(3, np.float32)
    _real(tmp_path, array, array, "tensor")
    for file in tmp_path.rglob("*.npy"):
        file.write_bytes(file.read_bytes()[:-5])
    item = tensor("output.0", array)
    sides = [dump([item], folder=tmp_path / side) for side in ("target", "golden")]
    both = side_by_side((item, item))
    measure([both], *sides, "tensor")
    assert both.rows[0].deviation == 0.0
    assert ".npy" in str(both.rows[0].metrics[NOTE])


def test_statistics_of_any_dtype_may_be_rounded_to_fp32_on_the_way() -> None:
    for dtype in (np.float64, np.int64):
        golden = tensor("output.0", np.arange(1, 9, dtype=dtype))
        assert golden.norm is not None
        rounded = tensor("output.0", np.arange(1, 9, dtype=dtype), norm=float(np.float32(golden.norm)))
        row = measured(rounded, golden)
        assert row.deviation is not None
        assert row.deviation > 0
        assert not row.differs


def test_weights_agree_whichever_axes_of_one_a_framework_gives_them() -> None:
    """MindSpore's Conv1d holds its weight as (out, in, 1, width)."""
    weight = np.random.standard_normal((4, 3, 5)).astype(np.float32)
    for state in ("parameters.weight", "parameters_grad.weight"):
        both = tensor(state, weight[:, :, None, :]), tensor(state, weight)
        assert measured(*both, frameworks=CROSS).deviation == 0
        assert measured(*both).deviation == 0


@pytest.mark.parametrize("mode", ["statistics", "tensor"])
def test_another_shape_of_the_same_values_is_another_layout(mode: str) -> None:
    """Channels last, heads before positions, weights turned; where elements are at hand, in the order of their size."""
    values = np.random.default_rng(9).standard_normal((2, 3, 4, 5)).astype(np.float32)
    golden = tensor("output.0", values)
    layouts = [values.transpose(0, 2, 3, 1), values.reshape(2, 3, 20), values.reshape(1, 2, 3, 4, 5), values.ravel()]
    for layout in layouts:
        row = measured(tensor("output.0", layout), golden, mode, frameworks=CROSS)
        assert not row.differs
        other = measured(tensor("output.0", layout * np.float32(1.01)), golden, mode, frameworks=CROSS)
        assert other.differs and other.deviation == pytest.approx(0.01, rel=0.05)


def test_a_cast_to_float16_that_only_two_figures_show_is_beyond_tolerance() -> None:
    values = np.random.default_rng(8).standard_normal((64, 64)).astype(np.float32)
    cast = values.astype(np.float16).astype(np.float32)
    assert measured(tensor("output.0", cast), tensor("output.0", values), frameworks=CROSS).differs


def test_other_shape_or_kind_of_dtype_is_not_comparable() -> None:
    golden = tensor("output.0", np.ones((2, 3), np.float32))
    assert measured(tensor("output.0", np.ones((3, 3), np.float32)), golden).deviation == math.inf
    assert measured(tensor("output.0", np.ones((2, 3), np.int32)), golden).deviation == math.inf


def test_dtypes_compare_by_meaning_and_the_coarser_sets_the_tolerance() -> None:
    values = np.linspace(-1, 1, 50, dtype=np.float32)
    mine = tensor("output.0", values)
    torch = tensor("output.0", values, dtype="torch.float32", type="torch.Tensor")
    row = measured(mine, torch, frameworks=CROSS)
    assert row.deviation == 0
    assert not row.differs
    half = tensor("output.0", values.astype(np.float16), dtype="torch.bfloat16", type="torch.Tensor")
    assert not measured(mine, half, frameworks=CROSS).differs
    assert measured(mine, half, frameworks=CROSS).tolerance == 4 * 2**-7


Rows = Callable[..., list[Row]]


class TestCarriedPrecision:
    """A layer computed in float16, then float32 again: what was rounded stays rounded.

    Of dumps that were read rows are measured many at once, of items made by hand each alone.
    """

    @pytest.fixture(params=["by hand", "read"])
    def rows(self, request: pytest.FixtureRequest, tmp_path: Path) -> Rows:
        def measured_rows(half: float, full: float, dtype: type = np.float16) -> list[Row]:
            values = np.random.standard_normal(4096)
            sides = [
                [
                    tensor("output.0", (values * factor).astype(kind), f"Cell.{name}.L.forward.0", norm=64.0 * factor)
                    for name, kind, factor in (("a", np.float32, 1.0), ("b", dtype, ours), ("c", np.float32, further))
                ]
                for ours, further in ((1 + half, 1 + full), (1.0, 1.0))
            ]
            if request.param == "by hand":
                pairs, dumps = [side_by_side(both) for both in zip(*sides, strict=True)], map(dump, ([], []), CROSS)
            else:
                read = [_written(tmp_path / name, items, name) for name, items in zip(CROSS, sides, strict=True)]
                pairs, dumps = pair(*read, Mappings()), iter(read)
            measure(pairs, *dumps, "statistics")
            return [one.rows[0] for one in pairs]

        return measured_rows

    def test_float32_after_float16_may_be_as_far_apart(self, rows: Rows) -> None:
        assert [row.differs for row in rows(half=4e-4, full=5e-4)] == [False, False, False]

    def test_not_much_further(self, rows: Rows) -> None:
        assert [row.differs for row in rows(half=1e-4, full=2e-3)] == [False, False, True]

    def test_never_further_than_float16_explains(self, rows: Rows) -> None:
        assert [row.differs for row in rows(half=3e-3, full=1e-2)] == [False, False, True]

    def test_equal_float16_carries_nothing(self, rows: Rows) -> None:
        assert [row.differs for row in rows(half=0.0, full=5e-4)] == [False, False, True]

    def test_what_differs_in_float16_already_carries_nothing(self, rows: Rows) -> None:
        assert [row.differs for row in rows(half=1e-1, full=5e-4)] == [False, True, True]

    def test_float32_carries_nothing_to_float32(self, rows: Rows) -> None:
        assert [row.differs for row in rows(half=1e-5, full=5e-5, dtype=np.float32)] == [False, False, True]


@pytest.mark.parametrize(
    ("place", "entry", "shape", "deviation"),
    [
        ("output.0", "Cell.a.L.forward.0", (2, 3), 0.0),
        ("output.0", "Cell.a.L.forward.0", (3, 3), math.inf),
        ("parameters_grad.weight", "Cell.a.L.parameters_grad.0", (3, 3), math.inf),
        ("parameters_grad.weight", "Cell.a.L.parameters_grad.0", (1, 3), None),  # summed over what is broadcast
    ],
)
def test_shapes_of_dumps_that_were_read(
    place: str, entry: str, shape: tuple[int, ...], deviation: float | None, tmp_path: Path
) -> None:
    items = [tensor(place, np.ones(each, np.float32), entry) for each in (shape, (2, 3))]
    read = [_written(tmp_path / name, [item], name) for name, item in zip(CROSS, items, strict=True)]
    (both,) = pair(*read, Mappings())
    measure([both], *read, "statistics")
    (row,) = both.rows
    assert (row.deviation, row.unread) == (deviation, False)


def _written(folder: Path, items: list[Item], framework: str) -> Dump:
    """A dump of one output or gradient an entry, as a recording writes it, read."""
    folder.mkdir(exist_ok=True)
    data = {
        item.entry: {
            "output" if item.state == "output" else item.path[0]: [
                {"type": item.type, "dtype": item.dtype, "shape": list(item.shape or ()), "Max": item.maximum,
                 "Min": item.minimum, "Mean": item.mean, "Norm": item.norm}
            ]
        }
        for item in items
    }  # fmt: skip
    envelope = {"task": "statistics", "level": "L0", "framework": framework, "dump_data_dir": None, "data": data}
    (folder / "dump.json").write_text(json.dumps(envelope))
    return read_dump(folder / "dump.json")


@pytest.mark.parametrize(("noise", "differs"), [(3e-5, False), (1e-3, True)])
def test_parameters_after_updates_carry_the_rounding_of_gradients(noise: float, differs: bool) -> None:
    """Most weights are no longer exactly equal: they have been through updates, and each is 3e-5 off."""
    values = np.random.standard_normal(4096).astype(np.float32)

    def one(place: str, deviation: float) -> tuple[Item, Item]:
        return tuple(  # type: ignore[return-value]
            tensor(place, values * np.float32(factor), f"Cell.{deviation}.L.forward.0") for factor in (1 + deviation, 1)
        )

    def differing(*both: tuple[Item, Item]) -> list[bool]:
        pairs = [side_by_side(each) for each in both]
        measure(pairs, dump([], "mindspore"), dump([], "pytorch"), "statistics")
        return [pair.rows[0].differs for pair in pairs]

    after = [one("parameters.weight", noise), one("parameters.weight", 1e-7), one("output.0", noise)]
    assert differing(*after) == [differs, False, differs]
    before = [one("parameters.weight", noise), one("parameters.weight", 0.0), one("output.0", noise)]
    assert differing(*before) == [True, False, True]


def test_one_sided_nan_is_not_comparable_and_shared_nan_is_equal() -> None:
    nan, one = tensor("output.0", [np.nan, 1.0]), tensor("output.0", [0.5, 1.0])
    assert measured(nan, one).deviation == math.inf
    assert measured(one, nan).deviation == math.inf
    assert measured(nan, nan).deviation == 0.0
    infinite = tensor("output.0", [np.inf, 1.0])
    assert measured(infinite, infinite).deviation == 0.0
    assert measured(infinite, tensor("output.0", [-np.inf, 1.0])).deviation == math.inf


def test_unknown_figures_are_skipped() -> None:
    known = tensor("input.0", [1, 2, 3])
    unknown = tensor("input.0", [1, 2, 3], mean=None, norm=None)
    assert measured(unknown, known).deviation == 0.0
    nothing = dict.fromkeys(("maximum", "minimum", "mean", "norm"))
    assert measured(tensor("input.0", [1], **nothing), tensor("input.0", [1], **nothing)).deviation is None


def test_md5() -> None:
    one, other = tensor("output.0", [1.0, 2.0]), tensor("output.0", [1.0, 2.0000001])
    assert measured(one, one, "md5").deviation == 0.0
    assert measured(one, other, "md5").deviation == math.inf
    assert measured(one, tensor("output.0", [1.0, 2.0], md5=None), "md5").deviation == 0.0
    # The same token ids as Int32 and int64 have other bytes: their statistics speak.
    ids = tensor("input.0", np.arange(4, dtype=np.int32)), tensor("input.0", np.arange(4, dtype=np.int64))
    assert measured(*ids, "md5").deviation == 0.0


@pytest.mark.parametrize(
    ("mine", "theirs", "equal"),
    [
        (2, 2.0, True),
        (True, True, True),
        (2, 3, False),
        ("mean", "mean", True),
        ("mean", "sum", False),
        ("Float32", "torch.float32", True),
        (float("nan"), float("nan"), True),
        ("2", 2, True),
    ],
)
def test_plain_values_agree_or_not(mine: Any, theirs: Any, equal: bool) -> None:
    assert measured(value("input.1", mine), value("input.1", theirs)).deviation == (0.0 if equal else math.inf)
    # Two frameworks' signatures differ: a differing argument is no deviation that could hide or make an origin.
    cross = measured(value("input.1", mine), value("input.1", theirs), frameworks=CROSS)
    assert cross.deviation == (0.0 if equal else None)


def test_nothing_beside_nothing_and_beside_something() -> None:
    something = tensor("input.0", [1.0])
    assert measured(null("input.0"), null("input.0")).deviation is None
    assert measured(null("input.0"), something).deviation == math.inf
    assert measured(null("input.0"), something, frameworks=CROSS).deviation is None
    alone = measured(something, None)
    assert alone.deviation is None
    assert alone.tolerance is None
    assert alone.metrics == {}


def test_an_extreme_counts_less_than_the_figures_of_all_elements() -> None:
    """One element off by 1e-4, where a kernel saturates, is no fault; the mean off by that is."""
    golden = tensor("output.0", np.tanh(np.random.standard_normal((64, 64)) * 2).astype(np.float32))
    assert golden.maximum is not None and golden.mean is not None
    one = tensor("output.0", np.ones(1), **_figures(golden, maximum=float(golden.maximum) + 1e-4))
    assert not measured(one, golden, frameworks=CROSS).differs
    far = tensor("output.0", np.ones(1), **_figures(golden, maximum=float(golden.maximum) + 1e-2))
    assert measured(far, golden, frameworks=CROSS).differs
    all_of_them = tensor("output.0", np.ones(1), **_figures(golden, mean=float(golden.mean) + 1e-4))
    assert measured(all_of_them, golden, frameworks=CROSS).differs
    # Whole numbers are exact, each of them; and where nothing else is known the extremes are all there is.
    ids = tensor("input.0", np.arange(100))
    off = tensor("input.0", np.arange(100), maximum=100.0)
    assert measured(off, ids).deviation == pytest.approx(1 / 99)
    alone = {"mean": None, "norm": None}
    row = measured(tensor("input.0", [1.1], **alone), tensor("input.0", [1.0], **alone))
    assert row.deviation == pytest.approx(0.1)


def test_forward_items_are_never_held_against_others() -> None:
    """A mask of -1e9 beside it must not hide a fault in a small output."""
    mask = tensor("input.0", np.full((8, 8), -1e9))
    output = [tensor("output.0", np.full(4, size)) for size in (1e-3, 2e-3)]
    pairs = [side_by_side((mask, mask), (output[0], output[1]))]
    measure(pairs, dump([]), dump([]), "statistics")
    assert pairs[0].rows[1].differs


def test_nothing_differs_between_two_frameworks_with_the_same_weights() -> None:
    """A real transformer encoder and its gradients, MindSpore and PyTorch, attribute names apart."""
    target, golden = (read_dump(DATA / "mapping" / f"encoder_{name}_L0" / "dump.json") for name in CROSS)
    pairs = pair(target, golden, load_mappings(layer=DATA / "mapping" / "encoder_layer_mapping.yaml"))
    measure(pairs, target, golden, "statistics")
    rows = [row for one in pairs for row in one.rows]
    assert sum(row.deviation is not None for row in rows) > 300
    assert [row.target.name for row in rows if row.differs and row.target] == []


def test_lenet_with_convolution_biases_before_batch_norm() -> None:
    target, golden = (read_dump(DATA / "mapping" / f"lenet_{name}_mix" / "dump.json") for name in CROSS)
    pairs = pair(target, golden, Mappings(cell={}))
    measure(pairs, target, golden, "statistics")
    differing = [row.target.entry for one in pairs for row in one.rows if row.differs and row.target]
    # These dumps have PyTorch's cross_entropy backward with respect to the log-softmax, and the gradients of
    # MindSpore's gamma and beta the other way round.
    assert set(differing) <= {"Functional.cross_entropy.0.backward", "Primitive.bn_train.BatchNorm.0.backward"}


def test_the_first_difference_is_the_changed_weight(tmp_path: Path) -> None:
    comparison, target, golden = scale_against_good(tmp_path)
    counted: list[int] = []
    measure(comparison.pairs, target, golden, "statistics", progress=counted.append)
    first = next(row for row in comparison.rows if row.differs)
    assert first.target is not None
    assert first.target.name == "Functional.layer_norm.2.forward.input.2"
    assert counted == list(range(1, len(comparison.pairs) + 1))


def test_metrics_of_real_data_are_all_there(tmp_path: Path) -> None:
    row = _real(tmp_path, np.ones(3), np.ones(3), "tensor")
    assert set(TENSOR_METRICS) < set(row.metrics)
