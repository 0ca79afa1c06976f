"""What a later step may be apart follows from the first: parameters that no pair shows, containers, indices."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from compare_parts import dump, tensor

from msprobe_ms.arrays.sketch import encode, sketch
from msprobe_ms.comparison.measuring.measure import measure
from msprobe_ms.comparison.origin.earlier_steps import EarlierSteps
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.search import find_origins
from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.dump.model import Dump

RANDOM = np.random.default_rng(11)
DATA, WEIGHT, FIRST, SECOND, ERROR = (RANDOM.standard_normal((24, 24)).astype(np.float32) for _ in range(5))
NET = "Cell.net.Net.forward.0"
LAYERS = "Cell.net.fc1.Dense.forward.0", "Cell.net.fc2.Dense.forward.0"
GRADIENT = "Cell.net.fc2.Dense.backward.0"


def step(
    weight: float = 0.0,
    first: float = 0.0,
    second: float = 0.0,
    net: float | None = None,
    gradient: float = 0.0,
    *,
    times: float = 1.0,
) -> Dump:
    """A step of two layers; weights, results and the gradient that arrives are off by these parts of their size.

    The net gives out the second layer's result, or some ``times`` of it.
    """

    def off(values: np.ndarray, part: float) -> np.ndarray:
        return values + np.float32(part) * ERROR

    values = [
        ("input.0", DATA, LAYERS[0]),
        ("parameters.weight", off(WEIGHT, weight), LAYERS[0]),
        ("output.0", off(FIRST, first), LAYERS[0]),
        ("input.0", off(FIRST, first), LAYERS[1]),
        ("output.0", off(SECOND, second), LAYERS[1]),
        ("input.0", DATA, NET),
        ("output.0", np.float32(times) * off(SECOND, second if net is None else net), NET),
        ("input.0", off(DATA, gradient), GRADIENT),
    ]
    made = dump([tensor(place, each, entry, sketch=encode(sketch(each), each.dtype)) for place, each, entry in values])
    for layer in LAYERS:
        made.entries[layer].parent = NET
    return made


def found(now: Dump, first: Dump, golden: Dump | None = None) -> list[str]:
    """The origins of a step, where the golden's never changes."""
    golden = golden or step()
    pairs = pair(now, golden, Mappings())
    measure(pairs, now, golden, "statistics")
    return [each.target for each in find_origins(Evidence(pairs, earlier=EarlierSteps({3: lambda: (first, golden)})))]


#: Rounding of a first step, by which both frameworks differ everywhere.
ROUNDED = step(0.0, 2e-7, 3e-7, gradient=3e-7)


def test_a_training_that_drifts_everywhere_is_quiet() -> None:
    assert found(step(1e-4, 2e-4, 3e-4, gradient=4e-4), ROUNDED) == []


@pytest.mark.parametrize("far", [0.05, 0.5])
def test_a_layer_that_computes_otherwise_from_now_on_is_the_origin(far: float) -> None:
    assert found(step(1e-4, 2e-4, far, gradient=far), ROUNDED) == [f"{LAYERS[1]}.output.0"]


def test_code_between_the_calls_of_a_module_is_the_origin_at_the_module() -> None:
    assert found(step(1e-4, 2e-4, 3e-4, net=0.2, gradient=0.2), ROUNDED) == [f"{NET}.output.0"]


def test_a_module_is_judged_by_the_results_inside_it_and_not_by_parameters_that_changed_them_little() -> None:
    """A weight that drifted by 2e-4 has set its layer's results apart by 2e-6; the module's are 5e-4 apart."""
    first, golden = step(0.0, 2e-7, 3e-7, times=1.5), step(times=1.5)
    assert found(step(2e-4, 2e-6, 2e-6, times=1.5), first, golden) == []
    assert found(step(2e-4, 2e-6, 2e-6, net=5e-4, times=1.5), first, golden) == [f"{NET}.output.0"]


def test_a_loss_that_changes_between_two_steps_shows_in_the_gradient_that_arrives() -> None:
    """Results differ as far as weights drifted; the gradient is half of the golden's."""
    assert found(step(1e-4, 2e-4, 3e-4, gradient=0.5), ROUNDED) == [f"{GRADIENT}.input.0"]


def test_the_gradient_that_the_loss_makes_of_results_has_no_switch_that_would_excuse_it() -> None:
    """Results are 1000 times further apart than in the first step: 8 times that is 2.4e-3 of the gradient."""
    assert found(step(1e-4, 2e-4, 3e-4, gradient=1e-3), ROUNDED) == []
    assert found(step(1e-4, 2e-4, 3e-4, gradient=6e-3), ROUNDED) == [f"{GRADIENT}.input.0"]


def test_a_first_step_that_was_equal_to_the_bit_tells_as_much_as_rounding() -> None:
    assert found(step(1e-4, 2e-4, 3e-4), step()) == []
    assert found(step(1e-4, 2e-4, 0.2), step()) == [f"{LAYERS[1]}.output.0"]


def test_the_gradient_of_the_loss_may_have_been_equal_to_the_bit() -> None:
    """It is 1 for a loss without a factor, on both sides, and later that of one that has a factor."""
    assert found(step(1e-4, 2e-4, 3e-4, gradient=3e-4), step()) == []
    assert found(step(1e-4, 2e-4, 3e-4, gradient=0.5), step()) == [f"{GRADIENT}.input.0"]


SOFTMAX = "Functional.softmax.0.forward"


def softmax_step(error: float, *, wrong: float = 0.0) -> Dump:
    """Logits beside a window's mask of -100, off by an absolute error; what comes out is off by ``wrong`` besides."""
    weight, logits = WEIGHT + error / 10 * ERROR, DATA + np.where(WEIGHT > 0, 0.0, -100.0) + error * ERROR
    powers = np.exp(logits.astype(np.float64))
    shares = powers / powers.sum(-1, keepdims=True) * (1 + wrong * SECOND)
    values = [("parameters.weight", weight, LAYERS[0]), ("input.0", logits, SOFTMAX), ("output.0", shares, SOFTMAX)]
    arrays = [(place, each.astype(np.float32), entry) for place, each, entry in values]
    return dump([tensor(place, each, entry, sketch=encode(sketch(each), each.dtype)) for place, each, entry in arrays])


def test_a_softmax_makes_relative_error_of_absolute_error() -> None:
    """Beside -100 an error looks small that is not."""
    first = softmax_step(2e-5)
    assert found(softmax_step(1e-3), first, softmax_step(0.0)) == []
    assert found(softmax_step(1e-3, wrong=0.05), first, softmax_step(0.0)) == [f"{SOFTMAX}.output.0"]


#: A thousand places of which hardly anything is left when they are added up.
PLACES = RANDOM.standard_normal((24, 1024))
PLACES = PLACES - PLACES.mean(-1, keepdims=True) + 0.05 * RANDOM.standard_normal((24, 1))


@pytest.mark.parametrize("call", ["Cell.net.pool.AvgPool2d.forward.0", "Tensor.mean.0.forward", "Tensor.sum.0.forward"])
def test_error_that_all_terms_share_adds_up_where_rounding_cancelled(call: str) -> None:
    assert_passes_on_what_is_shared(call, PLACES, lambda all_: all_.sum(-1) if "sum" in call else all_.mean(-1))


def test_a_part_may_hold_the_whole_error() -> None:
    small = DATA * np.where(np.arange(24) > 0, 1.0, 0.01)[:, None]
    assert_passes_on_what_is_shared("Tensor.__getitem__.0.forward", small, lambda all_: all_[0])


def assert_passes_on_what_is_shared(
    call: str, values: np.ndarray, function: Callable[[np.ndarray], np.ndarray]
) -> None:
    """Each value was off by rounding in the first step; in the next one all are off by the same. Half more is wrong."""
    rounding = 2e-7 * values * np.random.default_rng(3).standard_normal(values.shape)

    def step(shared: float, part: float = 1.0, wrong: float = 0.0) -> Dump:
        taken = values + part * rounding + shared
        given = function(taken)
        places = [
            ("parameters.weight", WEIGHT + shared * ERROR, LAYERS[0]),
            ("input.0", taken, call),
            ("output.0", given * (1 + wrong * np.sign(given)), call),
        ]
        arrays = [(place, each.astype(np.float32), entry) for place, each, entry in places]
        return dump([tensor(place, x, entry, sketch=encode(sketch(x), x.dtype)) for place, x, entry in arrays])

    assert found(step(1e-4), step(0.0), step(0.0, 0.0)) == []
    assert found(step(1e-4, wrong=0.5), step(0.0), step(0.0, 0.0)) == [f"{call}.output.0"]


FILL = "Tensor.masked_fill.0.forward"


def filled_step(error: float, largest: float = 0.0) -> Dump:
    """Scores off by an error, beside which a fill leaves a small one as the largest, off by a part of its own size."""
    scores = DATA - 8.0 + error * ERROR
    scores[0, 0] = 0.02 * (1 + largest)
    filled = np.where(WEIGHT[0, 0] < WEIGHT, -1e9, scores)
    values = [
        ("parameters.weight", WEIGHT + error * ERROR, LAYERS[0]),
        ("input.0", scores, FILL),
        ("output.0", filled, FILL),
    ]
    arrays = [(place, each.astype(np.float32), entry) for place, each, entry in values]
    return dump([tensor(place, each, entry, sketch=encode(sketch(each), each.dtype)) for place, each, entry in arrays])


@pytest.mark.parametrize(("largest", "told"), [(5e-4, []), (1.0, [f"{FILL}.output.0"])])
def test_one_element_beside_a_fill_may_have_been_equal_by_chance(largest: float, told: list[str]) -> None:
    """The largest was equal in the first step; all others drifted by ten times as much as they were apart then."""
    assert found(filled_step(4e-5, largest), filled_step(4e-6), filled_step(0.0)) == told


LOSS = "Functional.cross_entropy.0.forward"


def loss_step(weight: float, results: float, loss: float) -> Dump:
    """A layer whose weight and results are off by these parts, and a loss, a single number, that is off by another."""
    values = [
        ("input.0", DATA, LAYERS[0]),
        ("parameters.weight", WEIGHT + weight * ERROR, LAYERS[0]),
        ("output.0", FIRST + results * ERROR, LAYERS[0]),
        ("input.0", FIRST + results * ERROR, LOSS),
        ("output.0", np.array(2.5 * (1 + loss)), LOSS),
    ]
    arrays = [(place, np.asarray(each, np.float32), entry) for place, each, entry in values]
    return dump([tensor(place, each, entry, sketch=encode(sketch(each), each.dtype)) for place, each, entry in arrays])


def test_that_a_single_number_agreed_at_first_may_be_chance() -> None:
    """A sum of errors of both signs was 1e-7 of the loss where the results were 4e-6 off; now it is not."""
    first, golden = loss_step(0.0, 4e-6, 1e-7), loss_step(0.0, 0.0, 0.0)
    assert found(loss_step(1e-4, 2e-4, 9e-5), first, golden) == []
    assert found(loss_step(1e-4, 2e-4, 2e-2), first, golden) == [f"{LOSS}.output.0"]


BLOCK, GRADIENTS = "Cell.block.Block.forward.0", "Cell.net.fc1.Dense.parameters_grad"
HIDDEN, SLOPE = (RANDOM.standard_normal((24, 24)).astype(np.float32) for _ in range(2))


def trained(updates: int, apart: float, *, wrong: float = 0.0) -> Dump:
    """A layer, and beside it a block with weights that are not recorded; both were updated.

    ``apart``  part of an update by which this side's differ, and some roundings of what both take in and give out
    """
    learned = 0.1 * updates * (SLOPE + np.float32(apart) * ERROR)
    weight, hidden = WEIGHT - learned, HIDDEN - learned
    given = DATA @ weight + np.float32(1e-5 * apart) * ERROR
    taken = SECOND + np.float32((1 + 9 * updates) * 1e-5 * apart) * ERROR
    values = [
        ("input.0", DATA, LAYERS[0]), ("parameters.weight", weight, LAYERS[0]), ("output.0", given, LAYERS[0]),
        ("input.0", taken, BLOCK), ("output.0", taken @ hidden + np.float32(wrong) * taken, BLOCK),
        ("parameters_grad.weight", SLOPE, GRADIENTS),
    ]  # fmt: skip
    arrays = [(place, np.asarray(each, np.float32), entry) for place, each, entry in values]
    return dump([tensor(place, each, entry, sketch=encode(sketch(each), each.dtype)) for place, each, entry in arrays])


@pytest.mark.parametrize(("wrong", "told"), [(0.0, []), (1.5, [f"{BLOCK}.output.0"])])
def test_weights_that_are_not_recorded_drift_as_those_that_are(wrong: float, told: list[str]) -> None:
    """What a block takes in has drifted as well, though by less than its weights."""
    now, golden = trained(1, 0.01, wrong=wrong), trained(1, 0.0)
    pairs = pair(now, golden, Mappings())
    measure(pairs, now, golden, "statistics")
    earlier = EarlierSteps({1: lambda: (trained(0, 0.01), trained(0, 0.0))})
    assert [each.target for each in find_origins(Evidence(pairs, earlier=earlier))] == told


HEAD, INNER = "Cell.head.GELU.forward.0", "Cell.head.proj.Dense.forward.0"


@pytest.mark.parametrize(("wrong", "told"), [(0.0, []), (0.5, [f"{INNER}.output.0", f"{HEAD}.output.0"])])
def test_weights_of_a_call_that_one_side_alone_recorded_drift_as_well(wrong: float, told: list[str]) -> None:
    """Around it stands a module that is known for an activation, which would add hardly any error."""

    def side(updates: int, apart: float, *, recorded: bool, wrong: float = 0.0) -> Dump:
        made = trained(updates, apart)
        hidden = HIDDEN - 0.1 * updates * (SLOPE + np.float32(apart) * ERROR)
        given = (SECOND @ hidden * np.float32(1 + 1e-5 * apart) + np.float32(wrong) * SECOND).astype(np.float32)
        values = [("input.0", SECOND, HEAD), ("output.0", given, HEAD)]
        inner = [(place, each, INNER) for place, each, _ in values]
        items = [*(inner if recorded else ()), *values]
        head = dump([tensor(at, it, name, sketch=encode(sketch(it), it.dtype)) for at, it, name in items])
        if recorded:
            head.entries[INNER].parent = HEAD
        made.entries |= head.entries
        return made

    now, golden = side(1, 0.01, recorded=True, wrong=wrong), side(1, 0.0, recorded=False)
    pairs = pair(now, golden, Mappings())
    measure(pairs, now, golden, "statistics")
    before = side(0, 0.01, recorded=True), side(0, 0.0, recorded=False)
    found = find_origins(Evidence(pairs, earlier=EarlierSteps({1: lambda: before})))
    assert [each.target for each in found] == told


@pytest.mark.parametrize(("error", "told"), [(2e-3, []), (0.5, [f"{GRADIENT}.input.0"])])
def test_a_gradient_that_came_through_a_call_without_a_counterpart_is_not_the_losss(
    error: float, told: list[str]
) -> None:
    """The golden's last layer is a function: its weights drift unseen, and set the gradient apart."""
    head = "Cell.net.head.Dense.backward.0"

    def side(updates: int, apart: float, error: float, *, recorded: bool) -> Dump:
        made = trained(updates, apart)
        values = [("input.0", SLOPE, head), ("output.0", SLOPE, head)] if recorded else []
        values += [(state, DATA + np.float32(error) * ERROR, GRADIENT) for state in ("input.0", "output.0")]
        forward = [("input.0", FIRST, LAYERS[1]), ("output.0", FIRST + np.float32(1e-6 * apart) * ERROR, LAYERS[1])]
        gradient = ("parameters_grad.weight", DATA + np.float32(error) * ERROR, "Cell.net.fc2.Dense.parameters_grad")
        items = [*forward, *values, gradient]
        parts = dump([tensor(at, it, name, sketch=encode(sketch(it), it.dtype)) for at, it, name in items])
        made.entries |= parts.entries
        return made

    now, golden = side(1, 0.01, error, recorded=True), side(1, 0.0, 0.0, recorded=False)
    pairs = pair(now, golden, Mappings())
    measure(pairs, now, golden, "statistics")
    before = side(0, 0.01, 1e-7, recorded=True), side(0, 0.0, 0.0, recorded=False)
    found = find_origins(Evidence(pairs, earlier=EarlierSteps({1: lambda: before})))
    assert [each.target for each in found][:1] == told
