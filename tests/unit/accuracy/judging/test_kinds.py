"""How APIs compute, and how many terms they sum."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from msprobe_ms.accuracy.judging import kinds
from msprobe_ms.accuracy.judging.kinds import Kind, _kinds, kind_of, terms
from msprobe_ms.accuracy.judging.model import ApiKey


def kind(api: str, direction: str = "forward") -> Kind:
    return kind_of(ApiKey("mindspore", "Mint", api, direction))


@pytest.mark.parametrize(
    ("api", "forward", "backward"),
    [
        ("add", Kind.POINTWISE, Kind.POINTWISE),
        ("add_", Kind.POINTWISE, Kind.POINTWISE),
        ("__radd__", Kind.POINTWISE, Kind.POINTWISE),
        ("__iadd__", Kind.POINTWISE, Kind.POINTWISE),
        ("nn.functional.relu", Kind.EXACT, Kind.OTHER),
        ("_op.MatMul", Kind.PRODUCT, Kind.PRODUCT),
        ("tanh", Kind.POINTWISE, Kind.CANCELLING),
        ("gelu", Kind.CANCELLING, Kind.CANCELLING),
        ("mean", Kind.REDUCTION, Kind.OTHER),
        ("softmax", Kind.OTHER, Kind.OTHER),
        ("never_heard_of", Kind.OTHER, Kind.OTHER),
    ],
)
def test_kinds(api: str, forward: Kind, backward: Kind) -> None:
    assert (kind(api), kind(api, "backward")) == (forward, backward)


def test_no_api_is_listed_twice() -> None:
    content = yaml.safe_load(Path(kinds.__file__).with_name("kinds.yaml").read_text(encoding="utf-8"))
    for direction, lists in content.items():
        names = [str(api).replace("_", "").lower() for apis in lists.values() for api in apis]
        assert len(set(names)) == len(_kinds()[direction])
        by_kind = [{str(api).replace("_", "").lower() for api in apis} for apis in lists.values()]
        assert sum(map(len, by_kind)) == len(set(names)), direction


@pytest.mark.parametrize("shape", [(8, 64, 8), (2, 1000, 300), (300, 7, 2)])
def test_terms_of_a_product_are_no_fewer_than_its_inner_length(shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    assert terms(Kind.PRODUCT, max(m * k, k * n), m * n) >= k


def test_terms_of_the_others() -> None:
    assert terms(Kind.REDUCTION, 4096, 1) == 4096
    assert terms(Kind.POINTWISE, 64, 64) == terms(Kind.POINTWISE, 1, 64) == 1
    assert terms(Kind.POINTWISE, 64, 8) == 8  # the gradient of what was broadcast
    assert terms(Kind.OTHER, 4096, 4096) == 4096
    assert terms(Kind.OTHER, None, 10) == terms(Kind.OTHER, 10, 0) == 1
