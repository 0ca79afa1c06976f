"""MindSpore's APIs against their twins in torch: a sample of what `make api-sweep` does with all of them."""

from __future__ import annotations

import inspect
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.frameworks import runner
from msprobe_ms.frameworks.api_calls import Arguments
from msprobe_ms.frameworks.mindspore.known_differences import known_difference
from msprobe_ms.frameworks.pytorch.mindspore_twins import find_twin, registry
from torture.api_sweep import __main__ as sweep
from torture.api_sweep import check
from torture.api_sweep.check import AGREES, NO_KERNEL, NOTHING, Found
from torture.api_sweep.check import check as check_api

TWINS = Path(inspect.getfile(find_twin)).parent
PAIRS = TWINS.parents[2] / "comparison" / "pairing" / "mindspore_pytorch.yaml"

#: Of every family some, with what differs between MindSpore and torch: axes, defaults, overloads, conventions.
SAMPLE = (
    "Functional: add floor_divide xdivy selu gelu bessel_j0 igamma mean prod max std unique argmin transpose flatten "
    "mirror_pad space_to_batch_nd gather gather_nd scatter_nd_mul tensor_scatter_max strided_slice index_add conv2d "
    "unsorted_segment_max max_pool2d avg_pool2d interpolate grid_sample batch_norm lrn cross_entropy nll_loss ctc_loss "
    "kl_div leaky_relu softmax norm matrix_solve batch_dot cholesky_inverse one_hot arange",
    "Tensor: sum max std transpose __getitem__ __setitem__ gather take scatter_add median",
    "Mint: max cat nansum select",
    "MintFunctional: relu softmax nll_loss",
    "Primitive: GeLU.GeLU Addcmul.Addcmul SeLU.SeLU",
)
NAMES = [f"{prefix}.{api}" for prefix, _, apis in (line.partition(": ") for line in SAMPLE) for api in apis.split()]


@pytest.mark.parametrize("name", NAMES)
def test_a_twin_computes_the_same(name: str) -> None:
    prefix, api = name.split(".", 1)
    told = sweep.worst(check_api(prefix, api))
    known = known_difference(prefix, api)
    if known is None:
        assert told.forward in (AGREES, NO_KERNEL), told
        assert told.backward in (AGREES, NO_KERNEL, NOTHING, check.NO_GRADIENT), told
    else:
        assert sweep.is_known(name, told), told


def test_apis_of_pytorch_run_on_their_examples() -> None:
    for prefix, api in (("Torch", "topk"), ("Functional", "cross_entropy"), ("Tensor", "index_put_"), ("VF", "lstm")):
        found = check.run_alone(prefix, api)
        assert {(each.forward, each.backward) for each in found} == {(AGREES, AGREES)}, found


def test_a_wrong_twin_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.TWINS, "Functional.relu", lambda input: torch.relu(input) * 1.001)
    (first, *_) = check_api("Functional", "relu")
    assert first.forward == check.DIFFERS and 5e-4 < first.error < 2e-3

    class Slope(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, x: Any) -> Any:
            return torch.relu(x)

        @staticmethod
        def backward(context: Any, gradient: Any) -> Any:
            return gradient

    monkeypatch.setitem(registry.TWINS, "Functional.relu", lambda input: Slope.apply(input))
    (first, *_) = check_api("Functional", "relu")
    assert (first.forward, first.backward) == (AGREES, check.DIFFERS)
    assert not sweep.is_known("Functional.relu", first)

    monkeypatch.setitem(registry.TWINS, "Functional.relu", lambda x: torch.relu(x))
    assert sweep.worst(check_api("Functional", "relu")).forward == check.TWIN_RAISES  # it calls its parameter otherwise


def test_an_api_that_ends_its_process_costs_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    found = dict(sweep.sweep("mindspore", ["Functional.abs", "Functional.no_such_api", "Functional.exp"]))
    assert [sweep.worst(found[name]).forward for name in found] == [AGREES, check.NO_TWIN, AGREES]
    monkeypatch.setattr(sweep.sys, "executable", "/bin/false")
    assert list(sweep.sweep("mindspore", ["Functional.abs"])) == [("Functional.abs", [Found("crashed")])]


def test_a_worker_takes_its_time_to_start_and_says_several_lines_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    told = [json.dumps({"api": name, "found": [[AGREES]]}) for name in ("Functional.abs", "Functional.exp")]
    (tmp_path / "told").write_text("\n".join(["ready", *told, ""]))
    worker = tmp_path / "worker"
    worker.write_text(f"#!/bin/sh\nsleep 2\ncat {tmp_path}/told\nexec sleep 60\n")
    worker.chmod(0o700)
    monkeypatch.setattr(sweep.sys, "executable", str(worker))
    monkeypatch.setattr(sweep, "PATIENCE", 1)
    found = sweep.sweep("mindspore", ["Functional.abs", "Functional.exp", "Functional.cos"])
    assert [(name, each[0].detail or each[0].forward) for name, each in found] == [
        ("Functional.abs", AGREES), ("Functional.exp", AGREES), ("Functional.cos", "not back after 1 s"),
    ]  # fmt: skip


def test_most_pairs_of_the_public_table_have_a_twin() -> None:
    pairs = yaml.safe_load(PAIRS.read_text(encoding="utf-8"))
    counts: Counter[bool] = Counter()
    for name in _mindspore_names(pairs):
        prefix, _, api = name.partition(".")
        if prefix in ("Functional", "Tensor", "Mint", "MintFunctional"):
            counts[find_twin(prefix, api) is not None] += 1
    assert counts[True] > 0.85 * counts.total() > 500


def _mindspore_names(pairs: Any) -> set[str]:
    return {name for section in pairs.values() for name in section} if isinstance(pairs, dict) else set()


def test_no_api_has_two_twins() -> None:
    listed = yaml.safe_load((TWINS / "same_signatures.yaml").read_text(encoding="utf-8"))
    names: list[str] = []
    for prefix, places in listed.items():
        for place, apis in places.items():
            names += [f"{prefix}.{api}" for api in apis]
            if place != "renamed":
                assert all(find_twin(prefix, api) for api in apis), (prefix, place)
    assert [name for name, count in Counter([*names, *registry.TWINS]).items() if count > 1] == []
    with pytest.raises(ValueError, match="two twins"):
        registry.twin("Functional.prod")(print)


def test_random_results_have_no_twin() -> None:
    for name in ("Functional.dropout", "Functional.rrelu", "Mint.rand", "Tensor.bernoulli", "MintFunctional.dropout"):
        assert find_twin(*name.split(".")) is None


def test_the_twin_of_a_runner_computes_in_the_dtype_it_is_given() -> None:
    of_pytorch = runner("pytorch")
    x = TypedArray("float64", np.array([[0.1, 0.7], [0.4, -0.2]]))
    outcome = of_pytorch.run(of_pytorch.twin("Functional", "reduce_max"), Arguments((x,), {"axis": 1}), [  # type: ignore[attr-defined]
        TypedArray("float64", np.array([1.0, 2.0]))
    ])  # fmt: skip
    assert outcome.outputs[0].dtype == outcome.gradients[0].dtype == "float64"
    assert outcome.outputs[0].values.tolist() == [0.7, 0.4]
    assert outcome.gradients[0].values.tolist() == [[0, 1], [2, 0]]
