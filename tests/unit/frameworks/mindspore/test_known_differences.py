"""The list of what MindSpore is known to be wrong in."""

from __future__ import annotations

from pathlib import Path

import yaml

from msprobe_ms.frameworks.mindspore import known_differences
from msprobe_ms.frameworks.mindspore.known_differences import known_difference


def test_an_api_is_found_by_its_name_in_entries() -> None:
    selu = known_difference("Functional", "selu")
    assert selu is not None and selu.direction == "backward" and selu.size is not None and 0 < selu.size < 1
    assert known_difference("Primitive", "act.SeLU") == selu
    assert known_difference("Functional", "relu") is None and known_difference("Primitive", "act.ReLU") is None


def test_every_line_says_which_direction_and_why() -> None:
    listed = yaml.safe_load(Path(known_differences.__file__).with_suffix(".yaml").read_text())
    for names, each in listed.items():
        assert each["direction"] in ("forward", "backward", "both"), names
        assert len(each["reason"].split()) > 3, names
        assert ("size" in each) is (not each["reason"].startswith("raises")), names
