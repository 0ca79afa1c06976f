"""Standard layers by the names of their classes, and what they may have been made with."""

from __future__ import annotations

import pytest
from proof_calls import floats

from msprobe_ms.accuracy.proof.layers import layer_of


@pytest.mark.parametrize(
    ("name", "api"),
    [
        ("LayerNorm", "layer_norm"), ("FusedLayerNorm", "layer_norm"), ("LlamaRMSNorm", "rms_norm"),
        ("ColumnParallelLinear", "linear"), ("Dense", "linear"), ("Conv2d", "conv2d"), ("LogSoftmax", "log_softmax"),
        ("Embedding", "embedding"), ("BatchNorm2d", "batch_norm"), ("LeakyReLU", "leaky_relu"), ("ReLU6", "relu6"),
    ],
)  # fmt: skip
def test_classes_are_the_layers_that_their_names_end_with(name: str, api: str) -> None:
    layer = layer_of(name)
    assert layer is not None
    assert layer.api == api


def test_other_classes_are_none() -> None:
    for name in ("EncoderLayer", "FastGelu", "PReLU", "ScaledSoftmax"):
        assert layer_of(name) is None, name


def test_parameters_are_known_by_the_names_of_both_frameworks() -> None:
    layer = layer_of("LayerNorm")
    assert layer is not None
    x, gamma = floats(2, 4), floats(4)
    for names in (("gamma", "beta"), ("weight", "bias")):
        assert layer.arguments([x], dict.fromkeys(names, gamma)) == {"input": x, "weight": gamma, "bias": gamma}
    assert layer.arguments([x], {"gamma": gamma, "shift": gamma}) is None, "another layer of that name"
    assert layer.arguments([3], {}) is None


@pytest.mark.parametrize("name", ["GroupNorm", "BatchNorm2d", "Conv2d", "MaxPool2d", "Softmax"])
def test_tensors_of_no_such_layer_have_no_settings(name: str) -> None:
    layer = layer_of(name)
    assert layer is not None
    named = {"input": floats(), "weight": floats()}
    assert all(isinstance(each, dict) for each in layer.possible(named, ()))
    if name == "GroupNorm":
        assert layer.possible(named, ()) == []


def test_settings_of_a_convolution_fit_its_shapes() -> None:
    layer = layer_of("Conv2d")
    assert layer is not None
    named = layer.arguments([floats(1, 4, 9, 9)], {"weight": floats(6, 2, 3, 3)})
    assert named is not None
    settings = list(layer.settings(named, (1, 6, 5, 5)))
    assert {"stride": 2, "padding": (1, 1), "dilation": 1, "groups": 2} in settings
    assert {"stride": 1, "padding": (0, 0), "dilation": 2, "groups": 2} in settings
    for each in settings:
        reach = each["dilation"] * 2 + 1
        assert (9 + 2 * each["padding"][0] - reach) // each["stride"] + 1 == 5
