"""What parameters differ by after updates: rounding that optimizers magnify, or a fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from compare_nodes import CARRIED, FAULT, REST, node
from compare_nodes import origins as origins_of
from compare_parts import dump, tensor

from msprobe_ms.comparison.model import Pair
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.model import Dump

_RANDOM = np.random.default_rng(5)
#: A fused projection's bias in three parts: queries, keys, values. Of the keys the true gradient is zero.
_QUERIES, _KEYS = slice(0, 32), slice(32, 64)
_BIAS = _RANDOM.standard_normal(96).astype(np.float32)
_GRADIENT = _RANDOM.standard_normal(96).astype(np.float32)


def step(folder: Path, moved: slice, keys_gradient: float, updated: bool) -> Dump:
    """One step of real data; ``moved``: the part of the bias that Adam took steps with, in directions of their own."""
    rounding = np.float32(1 + 1e-6 * updated)
    bias, gradient = _BIAS * rounding, _GRADIENT * rounding
    bias[moved] += np.float32(2e-3 * updated) * np.sign(_RANDOM.standard_normal(32))
    gradient[_KEYS] = keys_gradient * _RANDOM.standard_normal(32)
    other, fused = "Cell.a.Dense.forward.0", "Cell.h.c_attn.Dense.forward.0"
    values: dict[tuple[str, str], Any] = {
        ("input.0", other): _BIAS,
        ("parameters.bias", other): _BIAS * rounding,
        ("output.0", other): _BIAS,
        ("input.0", fused): _BIAS,
        ("parameters.bias", fused): bias,
        ("output.0", fused): bias,
        ("parameters_grad.bias", "Cell.h.c_attn.Dense.parameters_grad.0"): gradient,
    }
    items = [tensor(place, array, entry) for (place, entry), array in values.items()]
    (folder / "dump_tensor_data").mkdir(parents=True)
    for item, array in zip(items, values.values(), strict=True):
        np.save(folder / "dump_tensor_data" / str(item.data_name), array)
    made = dump(items, folder=folder)
    made.mode = "tensor"
    return made


def origins(folder: Path, moved: slice, keys_gradient: float = 1e-8) -> list[str]:
    target = step(folder / "target", moved, keys_gradient, updated=True)
    golden = step(folder / "golden", moved, keys_gradient, updated=False)
    return [origin.target for origin in compare_dumps(target, golden, Options()).origins]


def test_a_part_whose_gradient_is_noise_may_have_moved(tmp_path: Path) -> None:
    assert origins(tmp_path, _KEYS) == []


def test_a_part_with_a_gradient_may_not(tmp_path: Path) -> None:
    assert origins(tmp_path, _QUERIES)[0] == "Cell.h.c_attn.Dense.forward.0.parameters.bias"


def test_where_the_gradient_is_exactly_zero_nothing_moves(tmp_path: Path) -> None:
    assert origins(tmp_path, _KEYS, keys_gradient=0.0)[0] == "Cell.h.c_attn.Dense.forward.0.parameters.bias"


def test_nan_in_a_parameter_is_never_noise() -> None:
    """Even where its layer's output is all that differs inside a block whose own output agrees."""
    inner, block, values = "Cell.h.fc.Dense.forward.0", "Cell.h.Block.forward.0", _BIAS.reshape(8, 12)

    def side(weight: Any, given: Any) -> Dump:
        places = {("input.0", inner): values, ("parameters.weight", inner): weight, ("output.0", inner): given}
        places |= {("input.0", block): values, ("output.0", block): values}
        made = dump([tensor(place, array, entry) for (place, entry), array in places.items()])
        made.entries[inner].parent = block
        return made

    broken = values.copy()
    broken[0, 0] = np.nan
    (origin,) = compare_dumps(side(broken, broken), side(values, values), Options()).origins
    assert (origin.target, origin.kind) == (f"{inner}.parameters.weight", "parameter")


BLOCK = "Cell.a.Attention.forward.0"


def noisy_block(*later: Pair) -> list[Pair]:
    others = [node(f"Cell.{i}.Dense.forward.0", input_0=0, parameters_weight=0.1, output_0=REST) for i in range(9)]
    noisy = node("Cell.a.k.Dense.forward.0", BLOCK, (4.0, 4.0), parameters_bias=FAULT, output_0=CARRIED)
    return [*others, noisy, *later, node(BLOCK, None, input_0=REST, output_0=REST)]


def test_inputs_beside_optimizer_noise_carry_it() -> None:
    beside = node("Functional.softmax.0.forward", BLOCK, (5.0, 4.0), input_0=20, output_0=REST)
    assert origins_of(*noisy_block(beside)) == []
    assert beside.rows[0].explained_by == "nearby noise"


def test_inputs_elsewhere_do_not() -> None:
    elsewhere = node("Cell.b.Norm.forward.0", None, (7.0, 2.0), given=(8.0, 2.0), input_0=CARRIED, output_0=CARRIED)
    assert origins_of(*noisy_block(elsewhere)) == ["Cell.b.Norm.forward.0.input.0"]
