"""The files that configure MindSpore's kernel dump: exact, for every key of ours."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msprobe_ms.config import Config, load_config
from msprobe_ms.recording.graphs import kernel_config
from msprobe_ms.recording.graphs.kernel_config import NOWHERE

SECTION = ("list", "data_mode", "summary_mode", "device", "precision", "file_format", "check_mode")

ALL_DEVICES = [0, 1, 2, 3, 4, 5, 6, 7]


@pytest.fixture
def configured(tmp_path: Path) -> Any:
    def configure(task: str, **keys: Any) -> Config:
        section = {key: keys.pop(key) for key in SECTION if key in keys}
        file = tmp_path / "config.json"
        file.write_text(json.dumps({"task": task, "level": "L2", "dump_path": "/dump", task: section, **keys}))
        return load_config(file)

    return configure


def common(**changed: Any) -> dict[str, Any]:
    """The block that all of them have, in its order."""
    return {
        "dump_mode": 0,
        "path": "/dump",
        "net_name": "Net",
        "iteration": "all",
        "saved_data": "statistic",
        "input_output": 0,
        "kernels": [],
        "support_device": ALL_DEVICES,
        **changed,
    }


HOST = {"enable": True, "trans_flag": True, "stat_calc_mode": "host", "device_stat_precision_mode": "high"}
FIGURES = ["max", "min", "avg", "l2norm"]


def test_kernel_by_kernel_statistics_as_they_come(configured: Any) -> None:
    document = kernel_config.kernel_dump(configured("statistics"), "2.10.0")
    assert document == {"common_dump_settings": common(statistic_category=FIGURES), "e2e_dump_settings": HOST}
    assert list(document["common_dump_settings"]) == list(common(statistic_category=FIGURES))
    assert list(document["e2e_dump_settings"]) == list(HOST)


def test_kernel_by_kernel_tensors_as_they_come(configured: Any) -> None:
    assert kernel_config.kernel_dump(configured("tensor"), "2.10.0") == {
        "common_dump_settings": common(saved_data="tensor", statistic_category=[]),
        "e2e_dump_settings": {"enable": True, "trans_flag": True},
    }


@pytest.mark.parametrize(
    ("keys", "changed"),
    [
        ({"list": ["MatMul", "Default/fc-Dense/MatMul-op0", "name-regex(.*fc.*)"]},
         {"dump_mode": 1, "kernels": ["MatMul", "Default/fc-Dense/MatMul-op0", "name-regex(.*fc.*)"]}),
        ({"step": [6, "0-1"]}, {"iteration": "0|1|6"}),
        ({"rank": [3, 1]}, {"support_device": [1, 3]}),
        ({"data_mode": ["all"]}, {"input_output": 0}),
        ({"data_mode": ["input"]}, {"input_output": 1}),
        ({"data_mode": ["output"]}, {"input_output": 2}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_each_key_changes_its_own_setting(configured: Any, task: str, keys: Any, changed: dict[str, Any]) -> None:
    for make in (lambda config: kernel_config.kernel_dump(config, "2.10.0"), kernel_config.graph_dump):
        before, after = make(configured(task)), make(configured(task, **keys))
        assert after["common_dump_settings"] == before["common_dump_settings"] | changed
        assert after.get("e2e_dump_settings") == before.get("e2e_dump_settings")


@pytest.mark.parametrize(
    ("keys", "changed"),
    [
        ({"async_dump": True}, {"enable": False}),
        ({"device": "device"}, {"stat_calc_mode": "device"}),
        ({"precision": "low"}, {"device_stat_precision_mode": "low"}),
    ],
)
@pytest.mark.parametrize("task", ["statistics", "exception_dump"])
def test_end_to_end_settings(configured: Any, task: str, keys: Any, changed: dict[str, Any]) -> None:
    config = configured(task, **keys)
    document = (
        kernel_config.exception_check(config) if task == "exception_dump" else kernel_config.kernel_dump(config, "2.8")
    )
    assert document["e2e_dump_settings"] == HOST | changed


@pytest.mark.parametrize(
    ("mode", "version", "asked"),
    [
        ("statistics", "2.10.0", FIGURES),
        ("md5", "2.7.0", ["md5"]),
        ("md5", "2.7.1", ["hash:md5"]),
        ("md5", "2.10.0", ["hash:md5"]),  # 2.10 is no earlier than 2.7
        (["mean", "max", "nan count"], "2.10.0", ["avg", "max", "nan count"]),
        (["hash", "md5", "negative zero count"], "2.10.0", ["hash:md5", "negative zero count"]),
        (["hash"], "2.6.0", ["md5"]),
    ],
)
def test_categories_in_the_frameworks_words(configured: Any, mode: Any, version: str, asked: list[str]) -> None:
    document = kernel_config.kernel_dump(configured("statistics", summary_mode=mode), version)
    assert document["common_dump_settings"]["statistic_category"] == asked


def test_whole_graphs(configured: Any) -> None:
    assert kernel_config.graph_dump(configured("statistics")) == {
        "common_dump_settings": common(op_debug_mode=0, file_format="npy")
    }
    assert kernel_config.graph_dump(configured("tensor", file_format="bin")) == {
        "common_dump_settings": common(saved_data="tensor", op_debug_mode=0, file_format="bin")
    }


@pytest.mark.parametrize(("mode", "number"), [("all", 3), ("aicore", 1), ("atomic", 2)])
def test_overflow_check_takes_everything_of_every_step(configured: Any, mode: str, number: int) -> None:
    config = configured("overflow_check", check_mode=mode, step=[2], rank=[1], list=["MatMul"], data_mode=["input"])
    assert kernel_config.overflow_check(config) == {
        "common_dump_settings": common(saved_data="full", support_device=[1], op_debug_mode=number, file_format="npy")
    }


def test_exception_check_takes_everything_of_every_step(configured: Any) -> None:
    config = configured("exception_dump", step=[2], rank=[1])
    assert kernel_config.exception_check(config) == {
        "common_dump_settings": common(saved_data="tensor", support_device=[1], op_debug_mode=4, file_format="npy"),
        "e2e_dump_settings": HOST,
    }


def test_on_cpu_tensors_are_taken_and_every_step_but_one_counts(configured: Any) -> None:
    document = kernel_config.kernel_dump(configured("statistics"), "2.10.0")
    taken = kernel_config.for_cpu(document)
    assert taken["common_dump_settings"] == document["common_dump_settings"] | {
        "saved_data": "tensor",
        "iteration": f"0-{NOWHERE - 1}",
    }
    assert taken["e2e_dump_settings"] == document["e2e_dump_settings"]
    assert document["common_dump_settings"]["iteration"] == "all"  # untouched
    some = kernel_config.kernel_dump(configured("tensor", step=[1, 5]), "2.10.0")
    assert kernel_config.for_cpu(some) == some


@pytest.mark.parametrize(
    ("keys", "passes"), [({}, True), ({"step": [1]}, True), ({"list": ["MatMul"], "step": [1]}, False)]
)
def test_whole_graphs_are_launched_with_the_file_unless_kernels_are_named(
    configured: Any, keys: Any, passes: bool
) -> None:
    assert kernel_config.passes_graph_launch(kernel_config.graph_dump(configured("tensor", **keys))) is passes


def selected(iterations: str) -> set[int]:
    """What the framework takes the text for."""
    spans = [[int(end) for end in span.split("-")] for span in iterations.split("|")]
    return {number for span in spans for number in range(span[0], span[-1] + 1)}


@given(st.sets(st.integers(0, 400), min_size=101))
def test_many_steps_become_ranges(steps: set[int]) -> None:
    config = Config(dump_path=Path("/dump"), level="L2").model_copy(update={"step": frozenset(steps)})
    iterations = kernel_config.graph_dump(config)["common_dump_settings"]["iteration"]
    assert selected(iterations) == steps
    spans = iterations.split("|")
    assert all(int(b.split("-")[0]) > int(a.split("-")[-1]) + 1 for a, b in pairwise(spans))  # none could be joined


@given(
    steps=st.frozensets(st.integers(0, 10**6), max_size=20),
    names=st.lists(st.text(min_size=1, max_size=20), max_size=5),
    io=st.sampled_from(["all", "input", "output"]),
)
def test_steps_names_and_sides_come_through_unchanged(steps: frozenset[int], names: list[str], io: str) -> None:
    config = Config(dump_path=Path("/dump"), level="L2").model_copy(
        update={"step": steps, "list": tuple(names), "data_mode": frozenset({io})}
    )
    settings = json.loads(json.dumps(kernel_config.kernel_dump(config, "2.10.0")))["common_dump_settings"]
    assert settings["kernels"] == names and settings["dump_mode"] == (1 if names else 0)
    iterations = settings["iteration"]
    assert iterations == "all" if not steps else selected(iterations) == steps
    assert "-" not in iterations
    assert ("all", "input", "output")[settings["input_output"]] == io
