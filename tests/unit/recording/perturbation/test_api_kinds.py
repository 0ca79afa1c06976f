"""Lists of APIs: names of all frameworks, each in the lists that it belongs to."""

from __future__ import annotations

import pytest

from msprobe_ms.frameworks.api_lists import recorded_apis
from msprobe_ms.recording.perturbation.api_kinds import _patterns, kind_of, plain_name


@pytest.mark.parametrize(
    ("lists", "names"),
    [
        ({"jumps"}, ("floor", "__floordiv__", "FloorDiv", "sign", "one_hot", "round_", "Mod")),
        ({"sums"}, ("matmul", "__matmul__", "MatMul", "BatchMatMul", "linear", "Conv2D", "conv_transpose2d", "einsum")),
        ({"sums", "symmetric"}, ("sum", "mean", "ReduceSum", "nansum")),
        ({"losses"}, ("mse_loss", "cross_entropy", "SoftmaxCrossEntropyWithLogits", "nll_loss", "NLLLoss")),
        ({"losses", "gradient_jumps"}, ("l1_loss", "margin_ranking_loss")),
        ({"gradient_jumps"}, ("max_pool2d", "MaxPool", "clamp", "topk", "Maximum")),
        ({"gradient_jumps", "symmetric"}, ("max", "amin", "ReduceMax")),
        ({"angles"}, ("sin", "Cos")),
        ({"undefined"}, ("empty_like", "new_empty", "resize_")),
        (set(), ("add", "__sub__", "softmax", "layer_norm", "LayerNorm", "relu", "exp", "maxime", "dropout", "gelu")),
    ],
)
def test_lists_of_names(lists: set[str], names: tuple[str, ...]) -> None:
    for name in names:
        kind = kind_of(name)
        assert {each for each in _patterns() if getattr(kind, each)} == lists, name


def test_every_list_knows_apis_that_are_recorded() -> None:
    names = {plain_name(name) for apis in recorded_apis().values() for name in apis}
    for key, pattern in _patterns().items():
        assert any(pattern.fullmatch(name) for name in names), key
