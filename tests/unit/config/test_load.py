"""Configuration: what is accepted, what it means, and the exact text of every refusal."""

from __future__ import annotations

import json
import os
import re
import shutil
import string
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from repository import ROOT

from msprobe_ms.config import Config, load_config
from msprobe_ms.config.load import DEFAULT_FILE
from msprobe_ms.config.model import GENERAL_KEYS, SECTION_KEYS
from msprobe_ms.config.values import MOST_NUMBERS, numbers
from msprobe_ms.config.vocabulary import ONLINE_KEYS
from msprobe_ms.config.without_effect import GeneralWithoutEffect, SectionWithoutEffect
from msprobe_ms.recording.selection.filters import Range
from msprobe_ms.support.errors import ConfigError

TASKS = "statistics, tensor, structure, overflow_check, exception_dump, grad_probe, free_benchmark"
CONFIGS = ROOT / "configs"
NUMBERS = 'an integer of 0 or more, or an inclusive range such as "4-6"'
MODULE = 'a module as {Cell or Module}.{name}.{Class}.{forward or backward}.{n}, such as "Cell.net.fc1.Dense.forward.0"'
API = 'an API as {Prefix}.{api}.{n}.{forward or backward}, such as "Functional.relu.0.forward"'
_MEBIBYTES = "use a whole number of MiB from 1 to 16777216, such as 2048"

GENERAL = (
    "task, level, dump_path, rank, step, extra_info, dump_enable, async_dump, permissions, max_memory, optimizer, "
    "parameters, model_itself, layers, primitives, numbers, call_sites, strides, api_list, acl_config"
)
PATTERN = 'a pattern, such as "class:LayerNorm"'
SKIP = "not accepted; use an integer n from 0 to 1000000: every n-th call is recorded"
END = "not accepted; use the name of an entry in quotes, or null for an open end"
SECTION = "scope, list, skip, places, tensor_list, data_mode, summary_mode, sketch, device, precision"


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def ordinary_user() -> Iterator[Path]:
    """A folder whose parents all may enter, seen by a user to whom permissions apply (root gives its own up)."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o755)
    load_config()  # modules and codecs that are imported when first used may lie where this user cannot go
    root = os.geteuid() == 0
    if root:
        os.chown(folder, 65534, 65534)
        os.seteuid(65534)
    try:
        yield folder
    finally:
        if root:
            os.seteuid(0)
        shutil.rmtree(folder)


def written(document: object) -> str:
    Path("config.json").write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return "config.json"


def load(document: dict[str, object], **arguments: object) -> Config:
    return load_config(written({"dump_path": "out", **document}), **arguments)  # type: ignore[arg-type]


def refusal(document: object, **arguments: object) -> str:
    with pytest.raises(ConfigError) as refused:
        load_config(written(document), **arguments)  # type: ignore[arg-type]
    return str(refused.value)


def section_refusal(content: object, *, task: str = "statistics", level: str = "L1") -> str:
    return refusal({"task": task, "level": level, "dump_path": "out", task: content})


# What is accepted


def test_without_a_file_the_default_is_used():
    assert load_config() == Config(
        task="statistics",
        level="L1",
        dump_path=Path.cwd() / "dump_path",
        rank=frozenset(),
        step=frozenset(),
        scope=None,
        list=(),
        skip=0,
        tensor_list=(),
        data_mode=frozenset({"all"}),
        summary_mode="statistics",
        api_list=None,
        extra_info=True,
        ignored=(),
    )


def test_the_shipped_default_and_the_packages_default_are_one():
    assert (CONFIGS / "config.json").read_bytes() == DEFAULT_FILE.read_bytes()


@pytest.mark.parametrize("example", sorted(CONFIGS.glob("*.json")), ids=lambda path: path.stem)
def test_every_example_loads_as_its_name_says(example):
    config = load_config(example)
    assert config.ignored == ()
    for level in ("L0", "L1", "mix"):
        assert config.level == level or level not in example.stem
    assert config.task == "tensor" or not example.stem.startswith("tensor_") or config.tensor_list
    assert config.summary_mode == "md5" or "md5" not in example.stem
    assert bool(config.scope) == ("scope" in example.stem)
    assert bool(config.skip) == ("coarse" in example.stem)


DOCUMENT = (CONFIGS.parent / "docs/config.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("example", re.findall(r"```json\n(.*?)```", DOCUMENT, re.DOTALL))
def test_every_documented_example_loads(example):
    assert load_config(written(example)).ignored == ()


def test_every_documented_scope_loads():
    tables = DOCUMENT.split("### Ranges")[1].split("### A coarse pass")[0]
    cells = [row.split("|")[1] for row in tables.split("\n") if row.startswith(("| `[", "| `{"))]
    scopes = [scope for cell in cells for scope in re.findall(r"`(.+?)`", cell)]
    assert len(scopes) == 11
    for scope in scopes:
        found = load({"level": "L0", "statistics": {"scope": json.loads(scope)}}).scope
        assert found.includes_last == scope.startswith("[")


def test_every_key_and_every_example_file_is_documented():
    keys = {
        *GENERAL_KEYS,
        *SECTION_KEYS,
        *ONLINE_KEYS,
        *GeneralWithoutEffect.model_fields,
        *SectionWithoutEffect.model_fields,
    }
    assert {key for key in keys if f"`{key}`" not in DOCUMENT} == set()
    names = {path.name for path in CONFIGS.glob("*.json")}
    written = {"dump.json", "stack.json", "construct.json", "kernel_kbyk_dump.json", "kernel_graph_dump.json"}
    written |= {"kernel_graph_overflow_check.json", "kernel_graph_exception_check.json"}
    assert set(re.findall(r"`(\w+\.json)`", DOCUMENT)) - written <= names


def test_the_documented_refusals_are_the_real_ones():
    document = {"dump_pth": "x", "dump_path": "out", "step": [0, 1, "x"], "statistics": {"data_mode": ["outputs"]}}
    shown = re.search(r"```text\n(.*?)```", DOCUMENT, re.DOTALL)
    assert shown is not None
    assert sorted(refusal(document, level="L3").split("\n")) == sorted(shown[1].strip().split("\n"))


def test_every_key_reaches_its_field():
    Path("apis.yaml").write_text("")
    config = load(
        {
            "task": "statistics",
            "level": "mix",
            "rank": [0, "2-3"],
            "step": "5",
            "extra_info": False,
            "api_list": "apis.yaml",
            "statistics": {
                "scope": ["Cell.a.Dense.forward.0", "Functional.relu.0.backward"],
                "list": ["relu", "Cell.a."],
                "skip": 9,
                "tensor_list": ["fc"],
                "data_mode": ["input", "backward"],
                "summary_mode": "md5",
            },
        }
    )
    assert config == Config(
        task="statistics",
        level="mix",
        dump_path=Path.cwd() / "out",
        rank=frozenset({0, 2, 3}),
        step=frozenset({5}),
        extra_info=False,
        api_list=Path.cwd() / "apis.yaml",
        scope=Range("Cell.a.Dense.forward.0", "Functional.relu.0.backward"),
        list=("relu", "Cell.a."),
        skip=9,
        tensor_list=("fc",),
        data_mode=frozenset({"input", "backward"}),
        summary_mode="md5",
    )


def test_keys_given_as_settings_override_the_file_and_name_themselves():
    path = written({"dump_path": "file", "level": "L0", "statistics": {"list": ["relu"], "skip": 2}})
    config = load_config(path, settings={"list": ["gelu"], "places": ["3_**"], "rank": [1]})
    assert (config.list, config.skip, config.places, config.rank) == (("gelu",), 2, ("3_**",), frozenset({1}))
    told = refusal({"dump_path": "file"}, settings={"skip": -1, "places": ["3."], "layer": True, "level": "L0"})
    assert [line.split(":")[0] for line in told.split("\n")] == [
        "argument layer",
        "argument skip",
        "argument places[0]",
    ]
    assert refusal({"dump_path": "file"}, settings={"skipp": 3}) == (
        f'argument skipp: unknown key; use one of {GENERAL}, {SECTION} (did you mean "skip"?)'
    )


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"level": "L0", "layers": True}, "layers: level L0 does not take layers for APIs"),
        (
            {"level": "L1", "task": "free_benchmark", "layers": True},
            "layers: task free_benchmark calls functions again, not layers; remove this key",
        ),
        ({"level": "L2", "numbers": "by_position"}, "numbers: level L2 numbers by name"),
        ({"level": "L1", "data_mode": ["parameters"]}, "data_mode: level L1 records no parameters"),
        ({"level": "L2", "places": ["0"]}, "places: level L2 records kernels"),
        ({"level": "debug", "places": ["0"]}, "places: level debug records what save() is given"),
    ],
)
def test_what_no_level_can_give_is_refused(keys: dict[str, object], told: str):
    assert told in refusal({"dump_path": "out"}, settings=keys)


def test_the_configuration_is_frozen():
    config = load({})
    with pytest.raises(ValidationError):
        config.task = "tensor"  # type: ignore[misc]


def test_arguments_override_the_file():
    path = written(
        {"task": "statistics", "dump_path": "file", "level": "L0", "step": [1], "tensor": {"list": ["relu"]}}
    )
    config = load_config(path, task="tensor", dump_path=Path("argument"), level="mix", step=[2, "4-5"])
    assert (config.task, config.level, config.step) == ("tensor", "mix", frozenset({2, 4, 5}))
    assert config.dump_path == Path.cwd() / "argument"
    assert config.list == ("relu",)


def test_a_task_given_as_an_argument_needs_no_section():
    config = load_config(written({"dump_path": "out", "statistics": {"list": ["relu"]}}), task="tensor")
    assert (config.task, config.list, config.data_mode) == ("tensor", (), frozenset({"all"}))


def test_dump_path_may_come_from_the_argument_alone():
    assert load_config(written({}), dump_path="here").dump_path == Path.cwd() / "here"


def test_the_dump_path_is_tried_but_not_created():
    load({"dump_path": "a/b"})
    assert sorted(os.listdir()) == ["config.json"]


def test_null_counts_as_absent():
    config = load({"task": None, "rank": None, "step": None, "statistics": {"list": None, "scope": None}})
    assert config == load({})


def test_all_among_the_data_modes_stands_alone():
    config = load({"statistics": {"data_mode": ["input", "all", "forward"]}})
    assert config.data_mode == frozenset({"all"})


def test_a_scope_of_one_name_starts_and_ends_there():
    config = load({"statistics": {"scope": ["Tensor.add.0.forward"]}})
    assert config.scope == Range("Tensor.add.0.forward", "Tensor.add.0.forward")


@pytest.mark.parametrize(
    ("level", "scope"),
    [
        ("L0", ["Cell.net.fc1.Dense.forward.0", "Module.net.fc2.Linear.backward.11"]),
        ("L1", ["Functional.relu.0.forward", "Primitive.matmul.MatMul.3.backward"]),
        ("mix", ["Functional.relu.0.forward", "Cell.Net.backward.0"]),
    ],
)
def test_scope_takes_the_names_of_its_level(level, scope):
    assert load({"level": level, "statistics": {"scope": scope}}).scope == Range(*scope)


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ([], None),
        ({}, None),
        ([None, None], None),
        ({"from": None, "until": None}, None),
        (["Tensor.add.0.forward", None], Range("Tensor.add.0.forward", None)),
        ([None, "Tensor.add.0.forward"], Range(None, "Tensor.add.0.forward")),
        ({"from": "Tensor.add.0.forward"}, Range("Tensor.add.0.forward", None, False)),
        ({"until": "Tensor.add.0.forward"}, Range(None, "Tensor.add.0.forward", False)),
        ({"from": "class:add", "until": "Tensor.*.3.*"}, Range("class:add", "Tensor.*.3.*", False)),
        (["name-regex(Tensor.+)"], Range("name-regex(Tensor.+)", "name-regex(Tensor.+)")),
    ],
)
def test_the_forms_of_a_scope(scope, expected):
    assert load({"statistics": {"scope": scope}}).scope == expected


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"skip": 1}, "skip: level debug records what save() is given, all of it; remove this key"),
        ({"scope": [None, "*"]}, "scope: level debug records what save() is given, all of it; remove this key"),
    ],
)
def test_level_debug_selects_nothing_but_tensors(section, message):
    assert section_refusal(section, level="debug") == f"config.json: statistics.{message}"
    assert load({"level": "debug", "statistics": {"skip": 0, "scope": {}, "tensor_list": ["*"]}}).tensor_list == ("*",)


def test_checksums_may_be_added_to_stored_tensors():
    assert load({"task": "tensor", "tensor": {"summary_mode": "md5"}}).summary_mode == "md5"


def test_api_list_is_found_beside_the_file_first(tmp_path):
    for folder in ("configs", "elsewhere"):
        Path(folder).mkdir()
        Path(folder, "apis.yaml").write_text("")
    Path("apis.yaml").write_text("")
    Path("configs/c.json").write_text('{"dump_path": "out", "api_list": "apis.yaml"}')
    assert load_config("configs/c.json").api_list == tmp_path / "configs/apis.yaml"
    Path("configs/apis.yaml").unlink()
    assert load_config("configs/c.json").api_list == tmp_path / "apis.yaml"


def test_a_file_with_a_byte_order_mark_is_read():
    Path("config.json").write_bytes(b'\xef\xbb\xbf{"dump_path": "out"}')
    assert load_config("config.json").task == "statistics"


# Files of the msprobe family run unchanged


def test_other_tasks_sections_and_idle_keys_pass_without_a_word():
    config = load(
        {
            "task": "statistics",
            "rank": [],
            "step": [],
            "level": "L1",
            "enable_dataloader": False,
            "acl_config": "",
            "async_dump": False,
            "max_memory": 2048,
            "precision": "high",
            "risk_level": "ALL",
            "is_deterministic": False,
            "statistics": {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics"},
            "tensor": {"scope": [], "list": [], "data_mode": ["all"], "file_format": "npy", "anything": 1},
            "overflow_check": {"overflow_nums": 1, "check_mode": "all"},
            "free_benchmark": {"fuzz_device": "npu", "if_preheat": False},
            "grad_probe": {"grad_level": "L1", "param_list": [], "bounds": [-1, 0, 1]},
            "run_ut": {"white_list": [], "error_data_path": "./"},
            "online_run_ut": {},
            "structure": {},
        }
    )
    assert config == load({})


def test_acl_config_counts_at_level_L2_alone(tmp_path: Path) -> None:
    Path("acl.json").write_text("{}")
    config = load({"level": "L2", "acl_config": "acl.json"})
    assert (config.acl_config, config.ignored) == (tmp_path / "acl.json", ())
    config = load({"level": "L1", "acl_config": "nowhere.json"})
    assert (config.acl_config, config.ignored) == (None, ("acl_config",))
    assert load({"level": "L2", "acl_config": ""}).acl_config is None
    assert 'acl_config: "no.json" is not a file' in refusal({"level": "L2", "acl_config": "no.json"})


def test_keys_that_ask_for_something_without_effect_are_collected():
    config = load(
        {
            "task": "tensor",
            "precision": "low",
            "seed": 1234,
            "enable_dataloader": True,
            "dump_enable": True,
            "tensor": {"file_format": "bin", "backward_input": ["x"], "device": "host", "precision": "low"},
        }
    )
    assert config.ignored == (
        "precision",
        "enable_dataloader",
        "seed",
        "tensor.backward_input",
        "tensor.precision",
        "tensor.file_format",
    )


@pytest.mark.parametrize(
    ("task", "section"),
    [
        ("statistics", {"device": "device", "precision": "low"}),
        ("tensor", {"file_format": "bin"}),
        ("overflow_check", {"check_mode": "aicore"}),
        ("exception_dump", {"device": "device", "precision": "low"}),
    ],
)
def test_keys_for_kernels_count_at_level_L2(task: str, section: dict[str, str]) -> None:
    config = load({"task": task, "level": "L2", task: section})
    assert {key: getattr(config, key) for key in section} == section
    assert config.ignored == ()
    if task != "exception_dump":
        ignored = load({"task": task, "level": "mix", task: section}).ignored
        assert sorted(ignored) == sorted(f"{task}.{key}" for key in section)


def test_a_list_of_categories_is_for_kernels() -> None:
    section = {"summary_mode": ["max", "nan count", "max", "hash"]}
    assert load({"level": "L2", "statistics": section}).summary_mode == ("max", "nan count", "hash")
    categories = (
        "max, min, mean, l2norm, count, negative zero count, positive zero count, zero count, nan count, "
        "negative inf count, positive inf count, hash, md5"
    )
    assert section_refusal({"summary_mode": ["max", "nan_count", 3]}, level="L2").split("\n") == [
        f'config.json: statistics.summary_mode[1]: "nan_count" is not accepted; use one of {categories} '
        '(did you mean "nan count"?)',
        f"config.json: statistics.summary_mode[2]: 3 is not accepted; use one of {categories}",
    ]
    message = section_refusal({"summary_mode": []}, level="L2")
    assert message == f"config.json: statistics.summary_mode: [] is not accepted; use statistics, md5, or {categories}"


def test_exceptions_are_looked_for_in_kernels() -> None:
    assert load({"task": "exception_dump"}).level == "L2"
    message = refusal({"task": "exception_dump", "level": "L0", "dump_path": "out"})
    assert message == 'config.json: level: "L0" does not work with task exception_dump; use L2'


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"async_dump": 1}, "async_dump: 1 is not accepted; use true or false"),
        ({"optimizer": "yes"}, 'optimizer: "yes" is not accepted; use true or false'),
        (
            {"optimizer": True, "level": "debug"},
            "optimizer: level debug records no updates; use one of L0, L1, mix, or remove this key",
        ),
        *(
            ({"max_memory": value}, f"max_memory: {text} is not accepted; {_MEBIBYTES}")
            for value, text in [
                (0, "0"),
                (-1, "-1"),
                (1.5, "1.5"),
                (True, "true"),
                ("1GB", '"1GB"'),
                (1 << 25, "33554432"),
            ]
        ),
        ({"precision": "hi"}, 'precision: "hi" is not accepted; use one of high, low (did you mean "high"?)'),
        ({"acl_config": []}, "acl_config: [] is not accepted; use a text in quotes"),
        ({"level": "L2", "acl_config": []}, "acl_config: [] is not accepted; use a path"),
        (
            {"level": "L0", "primitives": False},
            "primitives: level L0 leaves no primitives out; use level L1 or mix, or remove this key",
        ),
        ({"seed": "1"}, 'seed: "1" is not accepted; use a whole number'),
        (
            {"statistics": {"backward_input": "x"}},
            'statistics.backward_input: "x" is not accepted; use a list of texts, such as ["relu"]',
        ),
        ({"dump_enable": 0}, "dump_enable: 0 is not accepted; use true or false"),
    ],
)
def test_keys_without_effect_are_checked_for_type(document, message):
    assert refusal({"dump_path": "out", **document}) == f"config.json: {message}"


# Wrong values


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            {"task": "tensors"},
            f'task: "tensors" is not accepted; use one of {TASKS} (did you mean "tensor"?)',
        ),
        ({"task": ["tensor"]}, f'task: ["tensor"] is not accepted; use one of {TASKS}'),
        ({"level": "l0"}, 'level: "l0" is not accepted; use one of L0, L1, mix, L2, debug (did you mean "L0"?)'),
        ({"level": 0}, "level: 0 is not accepted; use one of L0, L1, mix, L2, debug"),
        ({"extra_info": "false"}, 'extra_info: "false" is not accepted; use true or false'),
        ({"dump_path": 3}, "dump_path: 3 is not accepted; use a path"),
        ({"dump_path": " "}, 'dump_path: " " is not accepted; use a path'),
        ({"dump_path": "a\0b"}, 'dump_path: "a\\u0000b" is not accepted; use a path'),
        ({"dump_path": None}, 'dump_path: this key is missing; use the folder for the dump, such as "./dump_path"'),
        ({"api_list": 3}, "api_list: 3 is not accepted; use a path"),
        ({"statistics": []}, 'statistics: [] is not accepted; use an object, such as {"list": []}'),
        ({"rank": 0}, 'rank: 0 is not accepted; use a list, such as [0, 2, "4-6"], or [] for all'),
        ({"step": {"0": 1}}, 'step: {"0": 1} is not accepted; use a list, such as [0, 2, "4-6"], or [] for all'),
        ({"step": "all"}, f'step: "all" is not accepted; use {NUMBERS}'),
        ({"step": [0, 1, -2]}, f"step[2]: -2 is not accepted; use {NUMBERS}"),
        ({"step": [True]}, f"step[0]: true is not accepted; use {NUMBERS}"),
        ({"step": [1.0]}, f"step[0]: 1.0 is not accepted; use {NUMBERS}"),
        ({"step": ["٣"]}, f'step[0]: "٣" is not accepted; use {NUMBERS}'),
        ({"rank": ["0", "6-4"]}, 'rank[1]: "6-4" ends before it starts; use "4-6"'),
        ({"rank": ["0-1000000"]}, "rank: more than 1000000 numbers are not accepted; use fewer, or [] for all"),
        (
            {"step": ["0-599999", "0-599999"]},
            "step: more than 1000000 numbers are not accepted; use fewer, or [] for all",
        ),
    ],
)
def test_a_wrong_general_value_is_named_with_what_is_accepted(document, message):
    assert refusal({"dump_path": "out", **document}) == f"config.json: {message}"


@pytest.mark.parametrize(
    ("section", "message"),
    [
        (
            {"data_mode": ["outputs"]},
            'data_mode[0]: "outputs" is not accepted; use one of all, input, output, forward, backward, parameters '
            '(did you mean "output"?)',
        ),
        (
            {"data_mode": []},
            "data_mode: [] is not accepted; use a list of one or more of all, input, output, forward, backward, "
            "parameters",
        ),
        ({"data_mode": "all"}, 'data_mode: "all" is not accepted; use a list, such as ["all"]'),
        (
            {"data_mode": [["all"]]},
            'data_mode[0]: ["all"] is not accepted; use one of all, input, output, forward, backward, parameters',
        ),
        ({"list": "relu"}, 'list: "relu" is not accepted; use a list of texts, such as ["relu"]'),
        ({"list": {"a": 1}}, 'list: {"a": 1} is not accepted; use a list of texts, such as ["relu"]'),
        ({"list": ["relu", 3]}, "list[1]: 3 is not accepted; use a text in quotes"),
        ({"list": [""]}, 'list[0]: "" is in every name; use a part of one, such as "relu", or [] for all'),
        (
            {"list": ["relu", "name-regex((Cell)"]},
            'list[1]: "name-regex((Cell)" holds no regular expression '
            "(missing ), unterminated subpattern at character 1 of it)",
        ),
        ({"list": ["name-regex(Cell"]}, 'list[0]: "name-regex(Cell" has no closing bracket; use "name-regex(…)"'),
        (
            {"list": ["name-regex(a{99999999999999999999})"]},
            'list[0]: "name-regex(a{99999999999999999999})" holds a regular expression that cannot be used '
            "(the repetition number is too large)",
        ),
        (
            {"tensor_list": ["class:"]},
            'tensor_list[0]: "class:" is no class; use its bare name after the colon: "class:LayerNorm"',
        ),
        (
            {"list": ["class:mindspore.nn.Dense"]},
            'list[0]: "class:mindspore.nn.Dense" is no class; use its bare name after the colon: "class:Dense"',
        ),
        ({"skip": -1}, f"skip: -1 is {SKIP}"),
        ({"skip": 2.0}, f"skip: 2.0 is {SKIP}"),
        ({"skip": 1_000_001}, f"skip: 1000001 is {SKIP}"),
        ({"skip": True}, f"skip: true is {SKIP}"),
        ({"skip": "3"}, f'skip: "3" is {SKIP}'),
        (
            {"summary_mode": "md"},
            'summary_mode: "md" is not accepted; use one of statistics, md5 (did you mean "md5"?)',
        ),
        (
            {"summary_mode": ["max", "min"]},
            'summary_mode: ["max", "min"] is for kernels, level L2; use one of statistics, md5',
        ),
        (
            {"scope": ["Tensor.add.0.forward"] * 3},
            "scope: 3 names are not accepted; use [start, end], or [] for everything",
        ),
        ({"scope": ["relu"]}, f'scope[0]: "relu" is not the name of an entry; use {API}; or {PATTERN}'),
        (
            {"scope": "Tensor.add.0.forward"},
            'scope: "Tensor.add.0.forward" is not accepted; use [start, end], '
            '{"from": first included, "until": last excluded}, or [] for everything',
        ),
        ({"scope": ["Tensor.add.0.forward", 3]}, f"scope[1]: 3 is {END}"),
        ({"scope": [""]}, f'scope[0]: "" is not the name of an entry; use {API}; or {PATTERN}'),
        ({"scope": {"until": ["Tensor.add.0.forward"]}}, f'scope.until: ["Tensor.add.0.forward"] is {END}'),
        ({"scope": {"untl": None}}, 'scope.untl: unknown key; use from, until (did you mean "until"?)'),
        ({"scope": {"from": "relu"}}, f'scope.from: "relu" is not the name of an entry; use {API}; or {PATTERN}'),
        (
            {"scope": {"from": "Tensor.add.0.forward", "until": "Tensor.add.0.forward"}},
            'scope.until: "Tensor.add.0.forward" is where the range begins, which leaves nothing; use a later entry',
        ),
        (
            {"scope": ["name-regex(*)"]},
            'scope[0]: "name-regex(*)" holds no regular expression (nothing to repeat at character 1 of it)',
        ),
        (
            {"scope": [None, "Cell.*.Dense.forward.0"]},
            f'scope[1]: "Cell.*.Dense.forward.0" is a module, and level L1 records APIs; use {API}',
        ),
        (
            {"scope": ["Tensor.add.0.forward", "Cell.fc.Dense.forward.0"]},
            f'scope[1]: "Cell.fc.Dense.forward.0" is a module, and level L1 records APIs; use {API}',
        ),
    ],
)
def test_a_wrong_section_value_is_named_with_what_is_accepted(section, message):
    assert section_refusal(section) == f"config.json: statistics.{message}"


@pytest.mark.parametrize(
    ("level", "name", "message"),
    [
        ("L0", "Functional.relu.0.forward", f"is an API, and level L0 records modules; use {MODULE}"),
        ("L0", "Cell.fc.Dense.0.forward", f"is not the name of an entry; use {MODULE}; or {PATTERN}"),
        ("L0", "Mint*relu*", None),
        ("L0", "Mint.*relu.0.forward", f"is an API, and level L0 records modules; use {MODULE}"),
        ("mix", "Cell.fc.Dense", f"is not the name of an entry; use {MODULE}; or {API}; or {PATTERN}"),
        (
            "mix",
            "Cell.fc.Dense.parameters_grad.0",
            f"is not the name of an entry; use {MODULE}; or {API}; or {PATTERN}",
        ),
    ],
)
def test_scope_refuses_names_that_its_level_never_records(level, name, message):
    if message is None:  # the text leaves open what it stands for
        load({"level": level, "statistics": {"scope": [name]}})
        return
    assert section_refusal({"scope": [name]}, level=level) == f'config.json: statistics.scope[0]: "{name}" {message}'


@pytest.mark.parametrize(
    ("task", "why"),
    [
        ("run_ut", "is a command, msprobe run_ut"),
        ("acc_check", "is a command, msprobe acc_check"),
        ("nan_check", "is not supported, overflow_check is"),
    ],
)
def test_tasks_of_the_family_that_record_nothing_say_what_does_that_work(task, why):
    message = refusal({"task": task, "dump_path": "out", task: {}})
    assert message == f'config.json: task: "{task}" {why}; use one of {TASKS}'


def test_the_section_of_free_benchmark_as_files_of_the_family_have_it():
    section = {
        "scope": [], "list": ["mindspore.ops.matmul"], "fuzz_device": "npu", "pert_mode": "change_value",
        "handler_type": "check", "fuzz_level": "L1", "fuzz_stage": "backward", "if_preheat": False, "preheat_step": 15,
        "max_sample": 20,
    }  # fmt: skip
    config = load({"task": "free_benchmark", "free_benchmark": section})
    assert (config.pert_mode, config.fuzz_stage, config.list) == ("change_value", "backward", ("mindspore.ops.matmul",))
    assert not config.ignored
    assert load({"task": "free_benchmark"}).pert_mode == "improve_precision"


def test_every_mistake_of_free_benchmark_is_in_one_error():
    section = {
        "pert_mode": "noise", "fuzz_device": "gpu", "fuzz_stage": "both", "handler_type": "fixed", "fuzz_level": "L0",
        "fuzz_args": 1, "if_preheat": 1, "preheat_step": 0, "max_sample": "many", "list": [1], "summary_mode": "md5",
    }  # fmt: skip
    message = refusal({"task": "free_benchmark", "dump_path": "out", "level": "mix", "free_benchmark": section})
    lines = [line.removeprefix("config.json: ") for line in message.splitlines()]
    assert {line.partition(":")[0] for line in lines} == {
        "level", *(f"free_benchmark.{key}" for key in section if key != "list"), "free_benchmark.list[0]",
    }  # fmt: skip
    assert 'level: "mix" is not supported with task free_benchmark; use L1' in lines
    assert any(
        'pert_mode: "noise" is not accepted; use one of improve_precision, add_noise, bit_noise, no_change, to_cpu, '
        "change_value, exchange_value" in line
        for line in lines
    )


@pytest.mark.parametrize(
    ("section", "key", "words"),
    [
        ({"fuzz_device": "cpu", "pert_mode": "add_noise"}, "fuzz_device", "works with pert_mode to_cpu alone"),
        (
            {"handler_type": "fix", "pert_mode": "bit_noise"},
            "handler_type",
            "works with pert_mode improve_precision or",
        ),
        ({"handler_type": "fix", "fuzz_stage": "backward"}, "handler_type", "works with fuzz_stage forward"),
        ({"handler_type": "fix", "if_preheat": True}, "handler_type", "without if_preheat"),
    ],
)
def test_what_cannot_be_repeated_so_is_refused(section, key, words):
    message = refusal({"task": "free_benchmark", "dump_path": "out", "free_benchmark": section})
    assert message.startswith(f"config.json: free_benchmark.{key}: ") and words in message
    assert load({"task": "free_benchmark", "free_benchmark": {"fuzz_device": "cpu", "pert_mode": "to_cpu"}})


def test_xor_is_refused_with_what_works():
    message = section_refusal({"summary_mode": "xor"})
    assert message == 'config.json: statistics.summary_mode: "xor" is not supported; use one of statistics, md5'


# Combinations that cannot work


def test_api_list_is_refused_where_no_apis_are_recorded():
    Path("apis.yaml").write_text("")
    message = refusal({"level": "L0", "dump_path": "out", "api_list": "apis.yaml"})
    assert message == "config.json: api_list: level L0 records no APIs; use level L1 or mix, or remove this key"


def test_tensor_list_is_refused_where_every_tensor_is_stored():
    message = section_refusal({"tensor_list": ["fc"]}, task="tensor")
    assert message == (
        "config.json: tensor.tensor_list: task tensor stores every tensor; "
        'use task statistics, or "list" to select entries'
    )
    assert load({"task": "tensor", "tensor": {"tensor_list": []}}).tensor_list == ()


# Keys


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"dump_pth": "x"}, f'dump_pth: unknown key; use one of {GENERAL} (did you mean "dump_path"?)'),
        ({"a\nb": 1}, f'"a\\nb": unknown key; use one of {GENERAL}'),
        ({"list": []}, 'list: this key belongs in the section "statistics"'),
        ({"statistics": {"lst": []}}, f'statistics.lst: unknown key; use one of {SECTION} (did you mean "list"?)'),
        ({"statistics": {"step": []}}, "statistics.step: this key belongs at the top of the file"),
    ],
)
def test_an_unknown_key_is_refused(document, message):
    assert refusal({"dump_path": "out", **document}) == f"config.json: {message}"


def test_a_key_written_twice_is_refused():
    assert refusal('{"task": "tensor", "task": "statistics"}') == (
        'config.json: the key "task" is there more than once; keep one'
    )


# Several mistakes; arguments


def test_all_mistakes_are_reported_at_once():
    document = {
        "task": "tensor",
        "level": "L9",
        "dump_path": "config.json",
        "step": [0, "a", -1],
        "colour": "red",
        "async_dump": "no",
        "tensor": {"data_mode": ["inputs", "all"], "scope": ["x"]},
    }
    assert refusal(document).split("\n") == [
        f"config.json: colour: unknown key; use one of {GENERAL}",
        f'config.json: dump_path: "{Path.cwd()}/config.json" is a file; use a folder, or a new path',
        'config.json: level: "L9" is not accepted; use one of L0, L1, mix, L2, debug',
        f'config.json: step[1]: "a" is not accepted; use {NUMBERS}',
        f"config.json: step[2]: -1 is not accepted; use {NUMBERS}",
        'config.json: async_dump: "no" is not accepted; use true or false',
        f'config.json: tensor.scope[0]: "x" is not the name of an entry; use {MODULE}; or {API}; or {PATTERN}',
        'config.json: tensor.data_mode[0]: "inputs" is not accepted; use one of all, input, output, forward, backward, '
        'parameters (did you mean "input"?)',
    ]


def test_a_flood_of_mistakes_is_cut():
    lines = refusal({"dump_path": "out", "step": ["x"] * 5000}).split("\n")
    assert len(lines) == 21
    assert lines[-1] == "… and 4980 more mistakes"


def test_a_long_value_is_shortened():
    message = refusal({"dump_path": "out", "task": "x" * 500})
    assert message == 'config.json: task: "' + "x" * 78 + "… is not accepted; use one of " + TASKS


def test_a_wrong_argument_is_called_an_argument():
    with pytest.raises(ConfigError) as refused:
        load_config(task="statistic", level="L3", step=[0, "x"], dump_path="")
    assert str(refused.value).split("\n") == [
        f'argument task: "statistic" is not accepted; use one of {TASKS} (did you mean "statistics"?)',
        'argument level: "L3" is not accepted; use one of L0, L1, mix, L2, debug',
        'argument dump_path: "" is not accepted; use a path',
        f'argument step[1]: "x" is not accepted; use {NUMBERS}',
    ]


def test_a_path_that_no_folder_can_have_is_refused():
    with pytest.raises(ConfigError) as refused:
        load_config(dump_path=Path("a\0b"))
    assert str(refused.value) == 'argument dump_path: "a\\u0000b" is not accepted; use a path'


def test_a_number_beyond_any_text_is_refused_as_an_argument():
    with pytest.raises(ConfigError) as refused:
        load_config(step=[10**5000])
    assert str(refused.value) == f"argument step[0]: a value of type int is not accepted; use {NUMBERS}"


# Files and folders


def test_a_missing_file():
    with pytest.raises(ConfigError) as refused:
        load_config("missing.json")
    assert str(refused.value) == (f"missing.json: no such file (looked from {Path.cwd()}); use the path of a json file")


def test_a_folder_in_the_place_of_the_file():
    Path("configs").mkdir()
    with pytest.raises(ConfigError) as refused:
        load_config("configs")
    assert str(refused.value) == (
        'configs: this is a folder; use the path of a json file, such as "configs/config.json"'
    )


@pytest.mark.parametrize("path", [3, "", b"config.json", "a\0b"])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(ConfigError, match=r"argument config_path: .* is not accepted; use the path of a json file"):
        load_config(path)


def test_a_file_that_may_not_be_read(ordinary_user):
    file = ordinary_user / "config.json"
    file.write_text("{}")
    file.chmod(0)
    with pytest.raises(ConfigError) as refused:
        load_config(file)
    assert str(refused.value) == f"{file}: cannot be read (Permission denied); use a json file this user may read"


def test_a_file_that_is_no_text():
    Path("config.json").write_bytes(b"\x93NUMPY\xff")
    with pytest.raises(ConfigError) as refused:
        load_config("config.json")
    assert str(refused.value) == "config.json: this is not text in UTF-8; use the path of a json file"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{\n  "task": "tensor"\n  "level": "L0"\n}', "line 3, column 3: not valid JSON (Expecting ',' delimiter)"),
        ('{\n  // why\n  "task": "tensor"\n}', "line 2, column 3: comments are not accepted in JSON; remove it"),
        (
            '{"task": "tensor", # why\n "level": "L0"}',
            "line 1, column 20: comments are not accepted in JSON; remove it",
        ),
        ('{"step": [1, /* two */ 2]}', "line 1, column 14: comments are not accepted in JSON; remove it"),
        (
            " \n",
            'line 2, column 1: the file is empty; use an object, such as {"task": "statistics", "dump_path": '
            '"./dump_path"}',
        ),
        ('["task"]', '["task"] is not accepted; use an object, such as {"task": "statistics"}'),
        ("[" * 100_000, "holds a number too long or nesting too deep for a configuration"),
        ('{"dump_path": "out", "statistics": ' + "[" * 50 + "]" * 50 + "}", None),
    ],
)
def test_a_file_that_is_no_json_object(text, message):
    if message is None:  # deep, but readable: refused for what it is
        assert refusal(text).endswith('is not accepted; use an object, such as {"list": []}')
    else:
        assert refusal(text) == f"config.json: {message}"


@pytest.mark.parametrize("below", ["", "/step0/rank0"])
def test_a_file_in_the_way_of_the_dump(below):
    Path("out").write_text("")
    out = Path.cwd() / "out"
    unusable = f'"{out}{below}" is not usable: ' if below else ""
    assert refusal({"dump_path": f"out{below}"}) == (
        f'config.json: dump_path: {unusable}"{out}" is a file; use a folder, or a new path'
    )


def test_a_dangling_link_in_the_way_of_the_dump():
    Path("out").symlink_to("nowhere")
    out = Path.cwd() / "out"
    assert refusal({"dump_path": "out/dump"}) == (
        f'config.json: dump_path: "{out}/dump" is not usable: "{out}" is a link to nothing; use a folder, or a new path'
    )


def test_a_dump_path_without_permission(ordinary_user):
    closed = ordinary_user / "closed"
    closed.mkdir()
    closed.chmod(0o500)
    config = ordinary_user / "config.json"  # the package's own may lie in a folder that is closed to this user
    config.write_text("{}")
    with pytest.raises(ConfigError) as refused:
        load_config(config, dump_path=closed / "dump")
    assert str(refused.value) == (
        f'argument dump_path: "{closed}/dump" cannot be written ("{closed}": Permission denied); '
        "use a folder this user may write"
    )


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a file system that takes no files from anyone")
def test_a_dump_path_where_nobody_can_write():
    message = refusal({"dump_path": "/proc/dump"})
    assert message.startswith('config.json: dump_path: "/proc/dump" cannot be written ("/proc": ')


def test_a_dump_path_the_system_cannot_take():
    assert refusal({"dump_path": "x" * 300}) == (
        f'config.json: dump_path: "{"x" * 300}" cannot be used (File name too long); use another path'
    )
    message = refusal({"dump_path": "\ud800"})
    assert message.startswith('config.json: dump_path: "\\ud800" cannot be used (')
    assert message.isprintable()


def test_a_missing_api_list_says_where_it_was_looked_for():
    Path("configs").mkdir()
    Path("configs/c.json").write_text('{"dump_path": "out", "api_list": "apis.yaml"}')
    with pytest.raises(ConfigError) as refused:
        load_config("configs/c.json")
    here = Path.cwd()
    assert str(refused.value) == (
        f'configs/c.json: api_list: "apis.yaml" is not a file (looked for "{here}/configs/apis.yaml" and '
        f'"{here}/apis.yaml"); use the path of a file that is there'
    )


# Properties

spans = st.tuples(st.integers(0, 300), st.integers(0, 300)).map(lambda ends: tuple(sorted(ends)))
members = st.one_of(
    st.integers(0, 10**6).map(lambda n: (n, {n})),
    st.integers(0, 10**6).map(lambda n: (str(n), {n})),
    spans.map(lambda ends: (f"{ends[0]}-{ends[1]}", set(range(ends[0], ends[1] + 1)))),
    spans.map(lambda ends: (f" {ends[0]} - {ends[1]} ", set(range(ends[0], ends[1] + 1)))),
)


@given(st.lists(members))
def test_numbers_are_the_union_of_their_members(pairs):
    assert numbers([text for text, _ in pairs]) == frozenset().union(*(selected for _, selected in pairs))


@given(st.integers(0, 10**9), st.integers(0, 10**7))
def test_a_range_is_inclusive_and_bounded(first, more):
    text = f"{first}-{first + more}"
    if more + 1 <= MOST_NUMBERS:
        selected = numbers(text)
        assert (len(selected), min(selected), max(selected)) == (more + 1, first, first + more)
    else:
        with pytest.raises(ValueError, match="more than 1000000 numbers"):
            numbers([text])


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(json_values, min_size=1, max_size=5))
def test_members_that_are_no_numbers_are_each_named(values):
    good = [isinstance(v, int) and not isinstance(v, bool) and 0 <= v < 10**18 for v in values]
    texts = [v for v in values if isinstance(v, str)]
    if all(good) or any(any(c in string.digits for c in text) for text in texts):
        return
    with pytest.raises(ConfigError) as refused:
        load_config(step=values)
    named = [line.split(":")[0] for line in str(refused.value).split("\n")]
    assert named == [f"argument step[{place}]" for place, fine in enumerate(good) if not fine]


END_TEXTS = st.sampled_from(["Cell.a.B.forward.0", "Tensor.add.0.forward", "x", "*.x", "class:", "name-regex(()", None])

GENERAL_VALUES = {
    "task": st.sampled_from(["statistics", "tensor", "structure", "x"]),
    "level": st.sampled_from(["L0", "L1", "mix", "L2", "x"]),
    "dump_path": st.sampled_from(["out", "", "config.json/x"]) | st.text(max_size=4),
    "rank": st.lists(st.integers(-1, 3), max_size=3),
    "step": st.text(max_size=3),
    "statistics": st.fixed_dictionaries(
        {},
        optional={
            "scope": st.lists(END_TEXTS, max_size=3)
            | st.dictionaries(st.sampled_from(["from", "until", "x"]), END_TEXTS | json_values),
            "list": st.lists(st.text(max_size=3) | st.text("*([a.").map("name-regex({})".format), max_size=2),
            "skip": st.integers() | json_values,
            "data_mode": st.lists(st.sampled_from(["all", "input", "x"]), max_size=3),
            "summary_mode": st.sampled_from(["md5", "xor"]) | json_values,
            "slice": json_values,
            "odd": json_values,
        },
    ),
}


@given(
    st.fixed_dictionaries({}, optional={key: value | json_values for key, value in GENERAL_VALUES.items()})
    | st.dictionaries(st.text(max_size=8), json_values, max_size=4)
)
def test_any_object_is_a_configuration_or_one_printable_error(document):
    try:
        config = load_config(written(document))
    except ConfigError as error:
        for line in str(error).split("\n"):
            assert line.isprintable()
            assert line.startswith(("config.json: ", "… and "))
    else:
        assert config.dump_path.is_absolute()
        assert config.scope != Range(None, None) and config.skip >= 0
        assert config.data_mode


# Lightness


@pytest.mark.processes
def test_the_command_line_answers_without_what_validates_configurations():
    code = (
        "import sys; from msprobe_ms.cli import main\n"
        "try: main(['-h'])\n"
        "except SystemExit: pass\n"
        "print(sorted({name.split('.')[0] for name in sys.modules} & {'pydantic', 'yaml', 'numpy'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=CONFIGS.parent, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.processes
def test_loading_the_configuration_imports_no_framework():
    code = (
        "import sys; from msprobe_ms.config import load_config; load_config();"
        "print(sorted({name.split('.')[0] for name in sys.modules}"
        " & {'mindspore', 'torch', 'numpy', 'pandas', 'yaml', 'openpyxl'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=CONFIGS.parent, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_calls_are_sent_only_where_the_file_says_so():
    where = {"nfs_path": "", "host": "127.0.0.1", "port": 59208, "tls_path": "certificates"}
    kept = load({"task": "tensor", "tensor": {**where, "online_run_ut": False}})
    assert not kept.online_run_ut and kept.host == ""
    assert set(kept.ignored) == {"tensor.host", "tensor.port", "tensor.tls_path"}
    sent = load({"task": "tensor", "tensor": {**where, "online_run_ut": True, "online_wait": 2.5}})
    assert (sent.online_run_ut, sent.host, sent.port, sent.tls_path) == (True, "127.0.0.1", 59208, "certificates")
    assert (sent.online_disk, sent.online_wait, sent.ignored) == (1024, 2.5, ())
    assert load({"task": "statistics", "statistics": {"online_run_ut": True}}).ignored == ("statistics.online_run_ut",)


@pytest.mark.parametrize(
    ("key", "value"),
    [("online_run_ut", "yes"), ("port", 0), ("port", "59208"), ("online_disk", 0), ("online_wait", -1), ("host", 5)],
)
def test_mistakes_in_where_calls_are_sent_are_told_with_their_place(key, value):
    with pytest.raises(ConfigError, match=rf"tensor\.{key}: .*is not accepted"):
        load({"task": "tensor", "tensor": {"online_run_ut": True, key: value}})


def test_what_records_no_apis_sends_none():
    with pytest.raises(ConfigError, match="level L0 records no calls of APIs"):
        load({"task": "tensor", "level": "L0", "tensor": {"online_run_ut": True}})
