"""With which runs of graphs steps begin, told by the order of the runs alone."""

from __future__ import annotations

import pytest

from msprobe_ms.frameworks.compiled_call import GraphRun, Reaches
from msprobe_ms.recording.graphs.run_steps import RunsOfStep

RUNS = {
    "N": GraphRun("N", "network", Reaches.RESULTS),
    "E": GraphRun("E", "evaluation", Reaches.RESULTS),
    "T": GraphRun("T", "training step", Reaches.WEIGHTS),
    "G": GraphRun("G", "gradients", Reaches.GRADIENTS, awaits_update=True),
    "H": GraphRun("H", "other gradients", Reaches.GRADIENTS, awaits_update=True),
    "A": GraphRun("A", "gradients alone", Reaches.GRADIENTS),
    "O": GraphRun("O", "optimizer", Reaches.WEIGHTS, is_update=True),
}


def steps(order: str) -> str:
    """The runs, with a space where a step begins."""
    runs = RunsOfStep()
    return "".join(" " * runs.begins_next(RUNS[run]) + run for run in order)


@pytest.mark.parametrize(
    "expected",
    [
        "N N N",
        "A A A",
        "T T T",
        "GO GO GO",
        "GGO GGO",  # gradients are accumulated
        "GOHO GOHO",  # two networks in turn
        "NT NT NT",  # a teacher
        "NGO NGO",
        "TN TN",  # a figure of the network afterwards
        "N NT NT",  # before training anything that runs is counted
        "T TEEE T TE T",  # an evaluation
        "GOEE GO",
        "GGGG",
    ],
)
def test_steps(expected: str) -> None:
    assert steps(expected.replace(" ", "")) == expected


def test_what_waits_for_its_optimizer_is_known() -> None:
    runs = RunsOfStep()
    for run in "GG":
        runs.begins_next(RUNS[run])
    assert runs.repeated == "gradients"
    runs.begins_next(RUNS["O"])
    assert runs.repeated is None
