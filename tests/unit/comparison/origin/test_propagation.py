"""Layers computed with numpy: what rounds by right agrees, what is set otherwise is named, however little it does."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from compare_nodes import node
from compare_nodes import origins as node_origins
from compare_parts import dump, tensor
from layer_dumps import NORM, Array, call, layer_norm, normal

from msprobe_ms.arrays.sketch import encode, sketch
from msprobe_ms.comparison.model import Origin, Pair
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.model import Dump, Item


def gelu(x: Array) -> Array:
    values = [0.5 * v * (1 + math.erf(v / math.sqrt(2))) for v in x.ravel().tolist()]
    return np.array(values, np.float32).reshape(x.shape)


def tanh_gelu(x: Array) -> Array:
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x.astype(np.float64) ** 3)
    return (0.5 * x * (1 + np.tanh(inner))).astype(np.float32)


def origins(target: Dump, golden: Dump) -> list[Origin]:
    golden.framework = "pytorch"
    return compare_dumps(target, golden, Options()).origins


@pytest.mark.parametrize("epsilon", [1e-6, 1e-7, 1e-12])
def test_a_wrong_epsilon_is_found_in_the_figures(epsilon: float) -> None:
    x = normal(4, 16, 64)
    (origin,) = origins(call(NORM, x, layer_norm(x, epsilon)), call(NORM, x, layer_norm(x, 1e-5, wide=True)))
    assert origin.target == f"{NORM}.output.0"
    assert origin.required_tolerance is not None and 3e-6 < origin.required_tolerance < 2e-5
    assert origin.reason.startswith("output.0 deviates by ")


def test_arguments_count_by_their_places_not_by_their_rows() -> None:
    """Rows of several calls that are one on the other side stand in the order of these calls."""
    name, x = "Functional.layer_norm.0.forward", normal(4, 16, 64, scale=0.1)

    def side(epsilon: float) -> Dump:
        result = layer_norm(x, epsilon, wide=True)
        return dump(
            [
                tensor(*place, name)
                for place in (("input.2", np.ones(64, np.float32)), ("input.0", x), ("output.0", result))
            ]
        )

    (origin,) = origins(side(1e-6), side(1e-5))
    assert origin.target == f"{name}.output.0"


@pytest.mark.parametrize("mean", [0.0, 5.0, 100.0, 3000.0])
def test_rounding_of_a_normalisation_is_none_however_much_it_subtracts(mean: float) -> None:
    x = normal(4, 16, 64, mean=mean)
    assert origins(call(NORM, x, layer_norm(x, 1e-5)), call(NORM, x, layer_norm(x, 1e-5, wide=True))) == []


@pytest.mark.parametrize("terms", [64, 16_384])
@pytest.mark.parametrize("mean", [0.0, 3.0])
def test_long_sums_round_by_right(terms: int, mean: float) -> None:
    name, x, weight = "Cell.net.fc.Dense.forward.0", normal(8, terms, mean=mean), normal(16, terms, scale=terms**-0.5)
    weight -= weight.mean(-1, keepdims=True)  # cancels what the mean of x gives
    straight = np.zeros((8, 16), np.float32)
    for k in range(terms):  # the worst order there is
        straight += x[:, k, None] * weight[None, :, k]
    wide = (x.astype(np.float64) @ weight.T.astype(np.float64)).astype(np.float32)
    assert origins(call(name, x, straight, weight=weight), call(name, x, wide, weight=weight)) == []


@pytest.mark.parametrize(("off", "told"), [(1e-6, False), (1e-3, True)])
def test_waves_of_a_part_of_the_way_are_as_exact_as_those_of_its_steps(off: float, told: bool) -> None:
    """Times are counted in thousandths before they are multiplied by frequencies, of an exponential that is ``off``."""
    name, times = "Cell.net.time.Timesteps.forward.0", np.float32([0.123, 0.456, 0.789, 0.987])

    def waves(off: float) -> Dump:
        frequencies = np.exp(-math.log(10_000) * np.arange(64) / 64) * (1 + off * np.cos(np.arange(64)))
        angles = 1000 * times.astype(np.float64)[:, None] * frequencies
        given = np.concatenate([np.sin(angles), np.cos(angles)], -1).astype(np.float32)
        sketched = encode(sketch(given), given.dtype)
        return dump([tensor("input.0", times, name), tensor("output.0", given, name, sketch=sketched)])

    assert [each.target for each in origins(waves(off), waves(0.0))] == [f"{name}.output.0"] * told


def beside_noise(layer: str, taken: Array, given: Array, off: float) -> Dump:
    """Waves of the time, ``off`` by right, and a block of one layer that does not take them in."""
    time, block, layer = (f"Cell.net.{name}.forward.0" for name in ("time.Timesteps", "block.Block", layer))
    times = np.float32([0.123, 0.456, 0.789, 0.987])
    frequencies = np.exp(-math.log(10_000) * np.arange(64) / 64) * (1 + off * np.cos(np.arange(64)))
    values = {
        (time, "input.0"): times,
        (time, "output.0"): np.sin(1000 * times[:, None] * frequencies).astype(np.float32),
        (layer, "input.0"): taken,
        (layer, "output.0"): given,
        (block, "input.0"): taken,
        (block, "output.0"): given,
    }
    made = dump([
        tensor(where, value, name, sketch=encode(sketch(value), value.dtype)) for (name, where), value in values.items()
    ])  # fmt: skip
    made.entries[layer].parent = block
    return made


@pytest.mark.parametrize("other", [True, False])
def test_an_approximation_is_found_where_noise_that_does_not_reach_it_is_larger(*, other: bool) -> None:
    layer, x = "block.act.GELU", normal(4, 16, 64)
    given = gelu(x) * np.float32(1 + 8e-6 * other)
    told = origins(beside_noise(layer, x, given, 1e-6), beside_noise(layer, x, gelu(x), 0.0))
    assert [each.target for each in told] == [f"Cell.net.{layer}.forward.0.output.0"] * other


def test_a_normalisation_shows_the_noise_of_small_rows_which_hardly_shows_in_what_it_takes_in() -> None:
    layer, x = "block.norm.LayerNorm", normal(4, 16, 64)
    x[:, 8:] *= np.float32(0.02)
    noisy = x.copy()
    noisy[:, 8:] *= 1 + normal(4, 8, 64, scale=1.2e-5)
    target = beside_noise(layer, noisy, layer_norm(noisy, 1e-5), 1e-6)
    assert origins(target, beside_noise(layer, x, layer_norm(x, 1e-5), 0.0)) == []


@pytest.mark.parametrize(("class_name", "told"), [("GELU", True), ("Tanh", False)])
def test_the_other_gelu_is_found_and_no_more_told_of_coarse_kernels(class_name: str, told: bool) -> None:
    name, x = f"Cell.net.act.{class_name}.forward.0", normal(4, 16, 64)
    other: Callable[[Array], Array] = tanh_gelu if told else lambda x: gelu(x) * np.float32(1 + 2e-5)
    assert [origin.target for origin in origins(call(name, x, other(x)), call(name, x, gelu(x)))] == (
        [f"{name}.output.0"] if told else []
    )


def test_dumps_of_one_machine_are_held_to_the_bit_that_they_keep() -> None:
    def step(shift: float) -> Dump:
        x = _X.copy()
        items = []
        for number in range(5):
            name = f"Cell.net.{number}.norm.LayerNorm.forward.0"
            items.append(tensor("input.0", x, name))
            x = layer_norm(x, 1e-5)
            items.append(tensor("output.0", x, name))
        name = "Cell.net.Attention.forward.0"
        return dump([*items, tensor("input.0", x, name), tensor("output.0", x * np.float32(1 + shift), name)])

    (origin,) = compare_dumps(step(2e-6), step(0.0), Options()).origins
    assert origin.target == "Cell.net.Attention.forward.0.output.0"
    assert compare_dumps(step(1e-7), step(0.0), Options()).origins == []


@pytest.mark.parametrize("framework", ["mindspore", "pytorch"])
def test_another_kernel_may_round_narrow_floats_otherwise_behind_layers_equal_to_the_bit(framework: str) -> None:
    """Every second element of float16 is the next number, as a fused attention rounds; twice as far is a fault."""

    def step(of: str, moved: int) -> Dump:
        x, items, prefix = _X.astype(np.float16), list[Item](), "Cell" if of == "mindspore" else "Module"
        for number in range(5):
            name = f"{prefix}.net.{number}.norm.LayerNorm.forward.0"
            items += [tensor("input.0", x, name), tensor("output.0", x, name)]
        given = x.ravel().copy()
        for _ in range(moved):
            given[::2] = np.nextafter(given[::2], np.resize(np.array([np.inf, -np.inf], np.float16), given[::2].shape))
        name = f"{prefix}.net.Attention.forward.0"
        result = tensor("output.0", given.reshape(x.shape), name, sketch=encode(sketch(given), given.dtype))
        return dump([*items, tensor("input.0", x, name), result], of)

    for moved, found in ((1, 0), (4, 1)):
        target, golden = step("mindspore", moved), step(framework, 0)
        assert len(compare_dumps(target, golden, Options(align=True)).origins) == found


def test_a_linear_layer_in_half_precision_beside_float32_is_held_to_what_that_rounds() -> None:
    """Of what it takes in, of its weight and of its result each element is rounded."""
    x, weight = normal(64, 32), normal(48, 32, scale=0.2)

    def step(dtype: type) -> Dump:
        items = []
        for number in range(8):  # most layers do so
            name = f"Cell.net.{number}.Dense.forward.0"
            given = (x.astype(dtype).astype(np.float32) @ weight.astype(dtype).astype(np.float32).T).astype(dtype)
            for place, each in (("input.0", x), ("parameters.weight", weight), ("output.0", given)):
                items.append(tensor(place, each, name, sketch=encode(sketch(each), each.dtype)))
        return dump(items)

    assert compare_dumps(step(np.float16), step(np.float32), Options()).origins == []


def trained(noise: float, seed: int, activation: Callable[[Array], Array] = gelu) -> Dump:
    """A normalisation, a matrix product of few rows and a GELU, with weights in which updates left ``noise``."""
    draw = np.random.default_rng(seed).standard_normal
    gamma, weight = 1 + 0.2 * draw(64), 0.125 * draw((256, 64))
    gamma, weight = ((each * (1 + noise * draw(each.shape))).astype(np.float32) for each in (gamma, weight))
    values = [_ROWS, layer_norm(_ROWS, 1e-5) * gamma]
    values.append(values[-1] @ weight.T)
    values.append(activation(values[-1]))
    entries = [f"Cell.net.{path}.forward.0" for path in ("norm.LayerNorm", "fc.Dense", "act.GELU")]
    items = [tensor("parameters.gamma", gamma, entries[0]), tensor("parameters.weight", weight, entries[1])]
    for name, taken, given in zip(entries, values[:-1], values[1:], strict=True):
        items += [tensor("input.0", taken, name), tensor("output.0", given, name)]
    return dump(sorted(items, key=lambda item: entries.index(item.entry)))


@pytest.mark.parametrize("seed", range(6))
def test_what_updates_left_in_parameters_is_no_fault_of_their_layers(seed: int) -> None:
    healthy = trained(0, seed)
    assert origins(trained(1e-5, seed), healthy) == []
    (origin,) = origins(trained(1e-5, seed, tanh_gelu), healthy)
    assert origin.target == "Cell.net.act.GELU.forward.0.output.0"


def test_in_half_precision_what_is_systematic_is_held_closer_still() -> None:
    x = normal(256, 256).astype(np.float16)

    def step(function: Callable[[Array], Array]) -> Dump:
        items = []
        for number in range(3):
            name = f"Cell.net.{number}.norm.LayerNorm.forward.0"
            items += [tensor("input.0", x, name), tensor("output.0", x, name)]
        name = "Cell.net.act.GELU.forward.0"
        return dump([*items, tensor("input.0", x, name), tensor("output.0", function(x).astype(np.float16), name)])

    (origin,) = compare_dumps(step(tanh_gelu), step(gelu), Options()).origins
    assert origin.target == "Cell.net.act.GELU.forward.0.output.0"


_RANDOM = np.random.default_rng(20)
_X = _RANDOM.standard_normal((8, 32), np.float32)
_ROWS = _RANDOM.standard_normal((2, 64), np.float32)


def test_norms_beyond_any_square_end_no_comparison() -> None:
    huge = normal(4, 16, 64).astype(np.float64) * 1e200
    assert origins(call(NORM, huge, huge), call(NORM, huge, huge)) == []


def batch_normed(rows: int, taken: float, given: float) -> Pair:
    """A batch norm of 336 channels, so many tolerances off in what it takes in and gives out."""
    size, name = math.sqrt(rows * 336), "Cell.norm.BatchNorm1d.forward.0"
    return node(name, None, (2.4, 0.8 * size), (rows, 336), given=(1.5, size), input_0=taken, output_0=given)


@pytest.mark.parametrize(("rows", "given", "found"), [(2, 9.1, 0), (2, 300.0, 1), (4, 9.1, 1), (64, 9.1, 1)])
def test_a_batch_norm_of_two_values_makes_much_of_an_error(rows: int, given: float, found: int) -> None:
    """Where both values of a channel are nearly alike, they are divided by next to nothing; seen in a MobileNetV2."""
    assert len(node_origins(batch_normed(rows, 0.31, given))) == found
