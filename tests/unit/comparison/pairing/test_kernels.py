"""Which kernel of a compiled graph stands beside which."""

from __future__ import annotations

import pytest
from built_dumps import dump, entry

from msprobe_ms.comparison.pairing.kernels import is_compiled, pair_kernels
from msprobe_ms.dump.model import Dump, Entry

FC1, FC2 = "Cell.fc1.Dense.forward.0", "Cell.fc2.Dense.forward.0"


def kernel(name: str, scope: str = "", parent: str | None = None, shape: tuple[int, ...] = (2, 3)) -> Entry:
    made = entry(f"Kernel.{name}.forward", {"input.0": shape, "output.0": shape}, parent)
    made.scope = scope
    return made


def of(*entries: Entry) -> Dump:
    return dump("mindspore", *entries)


def test_dynamic_dumps_pair_by_number() -> None:
    one = of(kernel("Add.0"), kernel("Add.1"))
    assert not is_compiled(one) and pair_kernels(one, one) == {}


def test_two_compiled_graphs_pair_by_path_whatever_the_order() -> None:
    one = of(kernel("Add.0", "Default/a-A/Add-op0"), kernel("Add.1", "Default/b-B/Add-op0"))
    other = of(kernel("Add.0", "Default_b-B_Add-op0"), kernel("Add.1", "Default_a-A_Add-op0"))
    assert pair_kernels(one, other) == {
        "Kernel.Add.0.forward": "Kernel.Add.1.forward",
        "Kernel.Add.1.forward": "Kernel.Add.0.forward",
    }


def test_a_kernel_that_runs_again_pairs_in_order() -> None:
    path = "Default/a-A/Add-op0"
    one = of(kernel("Add.0", path), kernel("Add.1", path), kernel("Add.2", path))
    other = of(kernel("Add.0", path), kernel("Add.1", path))
    assert pair_kernels(one, other) == {f"Kernel.Add.{n}.forward": f"Kernel.Add.{n}.forward" for n in (0, 1)}


@pytest.mark.parametrize(
    ("compiled", "dynamic"), [("Add", "AddExt"), ("ReduceSum", "SumExt"), ("Mul", "Muls"), ("Exp", "Exp")]
)
def test_beside_a_dynamic_graph_kernels_pair_inside_of_cells(compiled: str, dynamic: str) -> None:
    one = of(
        kernel(f"{compiled}.0", "Default/fc2-Dense/x-op0", FC2),
        kernel(f"{compiled}.1", "Default/fc1-Dense/x-op0", FC1),
        kernel(f"{compiled}.2", "Default/x-op0"),
    )
    other = of(kernel(f"{dynamic}.0", "", FC1), kernel(f"{dynamic}.1", "", FC2), kernel(f"{dynamic}.2"))
    assert pair_kernels(one, other) == {
        f"Kernel.{compiled}.0.forward": f"Kernel.{dynamic}.1.forward",
        f"Kernel.{compiled}.1.forward": f"Kernel.{dynamic}.0.forward",
    }
    assert pair_kernels(other, one) == {golden: target for target, golden in pair_kernels(one, other).items()}


def test_what_ran_in_other_numbers_or_shapes_has_no_twin() -> None:
    one = of(kernel("Add.0", "p", FC1), kernel("Add.1", "q", FC1), kernel("Exp.0", "r", FC1, (4,)))
    other = of(kernel("Add.0", "", FC1), kernel("Exp.0", "", FC1, (5,)))
    assert pair_kernels(one, other) == {}
