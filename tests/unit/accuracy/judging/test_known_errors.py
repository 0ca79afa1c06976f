"""Errors that frameworks are known to make: of which API, on which device."""

from __future__ import annotations

import pytest

from msprobe_ms.accuracy.judging.kinds import Kind, kind_of
from msprobe_ms.accuracy.judging.known_errors import _known, known_error
from msprobe_ms.accuracy.judging.model import ApiKey


@pytest.mark.parametrize(
    ("framework", "api", "device", "is_known"),
    [
        ("mindspore", "tanh", "", True),
        ("mindspore", "tanh", "CPU", True),
        ("mindtorch", "nn.functional.tanh", "cpu", True),
        ("mindspore", "tanh_.Tanh", "cpu", True),
        ("mindspore", "tanh", "ascend", False),
        ("pytorch", "tanh", "cpu", False),
        ("mindspore", "sqrt", "cpu", False),
    ],
)
def test_whose(framework: str, api: str, device: str, is_known: bool) -> None:
    key = ApiKey(framework, "Mint", api, "forward", device)
    assert (known_error(key, "float32") is not None) == is_known


def test_bounds_are_of_a_direction_and_a_dtype() -> None:
    found = known_error(ApiKey("mindspore", "Mint", "exp", "backward"), "float32")
    assert found is not None and (found.absolute, found.relative) == (0.0, 5e-5)
    assert known_error(ApiKey("mindspore", "Mint", "exp", "backward"), "float16") is None


def test_all_that_is_listed_can_be_used() -> None:
    for where, apis in _known().items():
        framework, _, device = where.partition(" ")
        for api, known in apis.items():
            assert kind_of(ApiKey(framework, "Mint", api)) not in (Kind.EXACT, Kind.OTHER), api
            for direction in set(known) - {"reason"}:
                assert direction in ("forward", "backward")
                for dtype in known[direction]:
                    found = known_error(ApiKey(framework, "Mint", api, direction, device), dtype)
                    assert found is not None and found.reason and max(found.absolute, found.relative) > 0
                    assert set(known[direction][dtype]) <= {"absolute", "relative"}
