"""The lists of the APIs that are recorded."""

from __future__ import annotations

from msprobe_ms.frameworks.api_lists import recorded_apis


def test_each_list_is_there_by_the_path_of_what_holds_the_apis() -> None:
    found = recorded_apis()
    assert {"relu", "add"} <= found["torch"] and "__add__" in found["torch.Tensor"]
    assert "relu" in found["mindspore.ops"] and "relu" in found["mindspore.mint.nn.functional"]
    assert "__file__" not in found and not any("." in name for names in found.values() for name in names)
