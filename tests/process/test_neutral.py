"""A few of the trainings of ``torture/neutral``, which trains every net in every way."""

from __future__ import annotations

import importlib
import random
from pathlib import Path
from typing import Any

import pytest
from forked import run_forked
from processes import environment

from torture.harness import printed
from torture.neutral.__main__ import NETS, OWN_NETS
from torture.neutral.ways import run

_SAMPLE = {
    "mindspore": (
        "in_place:mix:async", "in_place:L0:statistics", "in_place:L1:all_noise", "views:L1:md5",
        "views:L1:add_noise_backward", "hooked:L2:tensor", "hooked:L1:no_change_backward",
    ),
    "pytorch": (
        "in_place:mix:async", "in_place:L1:all_noise", "views:L0:tensor", "views:mix:md5",
        "views:L1:add_noise_backward", "hooked:L1:statistics", "hooked:L1:no_change_backward",
    ),
}  # fmt: skip


@pytest.mark.parametrize("framework", _SAMPLE)
def test_a_training_ends_with_the_same_bits(framework: str, tmp_path: Path) -> None:
    """Invariant 1, for writes in place, views and hooks of the user's, too."""
    command = ("-m", "torture.neutral", "--steps", "3", "--one", " ".join((framework, *_SAMPLE[framework])))
    imported = "torch" if framework == "pytorch" else framework
    done = run_forked(*command, framework=imported, cwd=tmp_path, env=environment())
    assert done.returncode == 0, done.stderr
    outcomes = list(printed(done.stdout.splitlines()))
    assert len(outcomes) == len(_SAMPLE[framework])
    for outcome in outcomes:
        assert not outcome.problems, outcome
        assert not outcome.figures["refused"]
        assert outcome.figures["values"] > 40 and outcome.figures["entries"] > 20, outcome


def test_every_net_is_trained_in_both_frameworks() -> None:
    for framework in _SAMPLE:
        side = importlib.import_module(f"torture.neutral.{framework}_side")
        nets = importlib.import_module(f"torture.nets.{framework}").NETS
        assert set(side.OWN) == set(OWN_NETS)
        assert {*side.OWN, *nets} == set(NETS)


class Meddling:
    """Stands where a debugger does, and is not neutral."""

    def __init__(self, how: str) -> None:
        self._how = how
        self._net: Any = None

    def start(self, net: Any) -> None:
        self._net = net
        if self._how == "random":
            random.random()

    def stop(self) -> None:
        if self._how == "parameters":
            self._net.head.bias.data[0] += 1e-3

    def step(self) -> None:
        if self._how == "layout":
            self._net.average = self._net.average.repeat(2)[::2]


@pytest.mark.parametrize(
    ("how", "shows"),
    [
        ("random", {"step 0: random numbers", "state of random"}),
        ("parameters", {"head.bias", "step 1: loss 0"}),
        ("layout", {"step 1: what tensors are"}),
    ],
)
def test_what_is_not_neutral_shows(how: str, shows: set[str]) -> None:
    side = importlib.import_module("torture.neutral.pytorch_side")
    bare, again = run(side.Training("in_place"), 2), run(side.Training("in_place"), 2)
    assert bare == again
    meddled = run(side.Training("in_place"), 2, Meddling(how))
    assert shows <= {name for name in bare if bare[name] != meddled[name]}
