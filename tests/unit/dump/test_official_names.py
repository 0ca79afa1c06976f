"""Official names of APIs beside the names of their entries."""

from __future__ import annotations

import pytest

from msprobe_ms.dump.dialects import PYTORCH
from msprobe_ms.dump.official_names import PYTORCH_PLACES, entry_of, official_name, pattern_of
from msprobe_ms.dump.patterns import matcher


@pytest.mark.parametrize("place", PYTORCH_PLACES.items())
def test_each_place_has_its_prefix_and_back(place: tuple[str, str]) -> None:
    prefix, path = place
    assert prefix in PYTORCH.api_prefixes
    for direction, short in (("forward", "fwd"), ("backward", "bwd")):
        assert entry_of(f"{path}.relu_.12.{short}") == f"{prefix}.relu_.12.{direction}"
        assert official_name(f"{prefix}.relu_.12.{direction}") == f"{path}.relu_.12.{short}"


@pytest.mark.parametrize("text", ["relu", "torch.relu", "torch.relu.x.fwd", "torch.a.b.c.1.fwd", "numpy.add.1.fwd", ""])
def test_what_is_no_call_has_no_entry(text: str) -> None:
    assert entry_of(text) is None


@pytest.mark.parametrize("entry", ["Module.a.ReLU.forward.0", "loss.0.debug", "Mint.add.0.forward", "anything"])
def test_what_is_no_api_keeps_its_name(entry: str) -> None:
    assert official_name(entry) == entry


def test_an_api_stands_for_all_its_calls_and_for_no_other() -> None:
    pattern = pattern_of("torch.nn.ReLU")
    assert pattern is not None
    hits = matcher(pattern)
    assert hits("Layer.ReLU.3.forward") and hits("Layer.ReLU.30.backward")
    assert not hits("Layer.ReLU6.3.forward") and not hits("Functional.relu.3.forward")
    assert pattern_of("relu") is None and pattern_of("torch.a.b.c") is None
