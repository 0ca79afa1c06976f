"""Dumps of every known version come back as written: names, figures, parents, call sites."""

from __future__ import annotations

import gc
import json
import logging
import math
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from repository import DATA

import msprobe_ms
from msprobe_ms.arrays.sketch import decode, encode
from msprobe_ms.dump.model import Dump, Item
from msprobe_ms.dump.reading.reader import find_dumps, read_dump
from msprobe_ms.support.errors import DumpFormatError, MissingTensorError
from msprobe_ms.support.log import logger

GOLDEN = DATA / "golden"
FORWARD = "Functional.f.0.forward"
LEAF = {
    "type": "mindspore.Tensor",
    "dtype": "Float32",
    "shape": [2, 3],
    "Max": 1.5,
    "Min": -1.0,
    "Mean": 0.25,
    "Norm": 2.0,
}


@pytest.fixture
def warnings_logged(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    logger.addHandler(caplog.handler)
    with caplog.at_level(logging.INFO, logger.name):
        yield caplog
    logger.removeHandler(caplog.handler)


def write(folder: Path, data: object, stack: object = None, construct: object = None, **envelope: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    whole = {"task": "statistics", "level": "L1", "framework": "mindspore", "dump_data_dir": None, "data": data}
    (folder / "dump.json").write_text(json.dumps({**whole, **envelope}))
    for name, content in (("stack.json", stack), ("construct.json", construct)):
        if content is not None:
            (folder / name).write_text(json.dumps(content))
    return folder / "dump.json"


def items_of(folder: Path, body: object, entry: str = FORWARD, **envelope: object) -> list[Item]:
    return read_dump(write(folder, {entry: body}, **envelope)).entries[entry].items


def one(folder: Path, leaf: object) -> Item:
    (item,) = items_of(folder, {"input_args": [leaf]})
    return item


# --- flattening -------------------------------------------------------------------------------------------------------


def test_tensor_leaf(tmp_path: Path) -> None:
    leaf = {**LEAF, "requires_grad": True, "data_name": "f.npy", "md5": "0a1b2c3d"}
    assert one(tmp_path, leaf) == Item(
        *(FORWARD, "input", ("0",), False, "tensor", "mindspore.Tensor", "Float32", (2, 3)),
        *(1.5, -1.0, 0.25, 2.0, True, "0a1b2c3d", "f.npy"),
    )


NUMBERS = np.arange(16.0)
FLOAT32, FLOAT64 = (encode(NUMBERS, np.dtype(dtype)) for dtype in ("f4", "f8"))


def test_sketches(tmp_path: Path) -> None:
    """Some tensors have one, as text; what is no sketch is passed over."""
    said = [None, FLOAT32, None, FLOAT64, "AAAA", "", 5, [FLOAT32], "é" * 88, FLOAT32[:-2], FLOAT32]
    body = {"input_args": [{**LEAF, **({} if text is None else {"Sketch": text})} for text in said]}
    known = [item.sketch for item in items_of(tmp_path, {**body, "output": [{"type": "int", "value": 3}, None]})]
    assert known == [None, FLOAT32, None, FLOAT64, *[None] * 6, FLOAT32, None, None]
    numbers = decode(known[3] or "")
    assert numbers is not None and numbers.tolist() == NUMBERS.tolist()


def test_sketches_that_nobody_asks_for_are_not_kept(tmp_path: Path) -> None:
    file = write(tmp_path, {FORWARD: {"output": [{**LEAF, "Sketch": FLOAT32}]}})
    with_, without = (read_dump(file, sketches=sketches).entries[FORWARD].items[0] for sketches in (True, False))
    assert with_.sketch == FLOAT32
    assert without == with_._replace(sketch=None)


def test_sections_in_order_with_names_and_states(tmp_path: Path) -> None:
    body = {
        "output": [LEAF],
        "parameters": {"weight": LEAF, "bias": None},
        "input_kwargs": {"axis": {"type": "int", "value": 1}, "mask": {"left": [LEAF]}},
        "input_args": [LEAF, [LEAF, [None]], {"key": LEAF}, [], {}],
    }
    items = items_of(tmp_path, body, "Cell.net.fc.Dense.forward.0")
    assert [item.suffix for item in items] == [
        *("input.0", "input.1.0", "input.1.1.0", "input.2.key"),
        *("input.axis", "input.mask.left.0"),
        *("output.0", "parameters.weight", "parameters.bias"),
    ]
    assert items[0].name == "Cell.net.fc.Dense.forward.0.input.0"
    assert [item.keyword for item in items] == [False] * 4 + [True] * 2 + [False] * 3
    assert [item.kind for item in items] == ["tensor", "tensor", "null"] + ["tensor"] + ["value"] + ["tensor"] * 3 + [
        "null"
    ]


def test_backward_and_parameter_gradients(tmp_path: Path) -> None:
    backward = items_of(tmp_path, {"input": [LEAF], "output": [None, LEAF]}, "Cell.fc.Dense.backward.0")
    assert [item.suffix for item in backward] == ["input.0", "output.0", "output.1"]
    for entry in ("Cell.fc.Dense.parameters_grad.0", "Cell.fc.Dense.parameters_grad"):
        gradients = items_of(tmp_path, {"weight": [LEAF], "bias": [None], "both": [LEAF, LEAF]}, entry)
        assert [item.name for item in gradients] == [
            f"{entry}.{path}" for path in ("weight", "bias", "both.0", "both.1")
        ]
        assert {item.state for item in gradients} == {"parameters_grad"}


def test_debug_json(tmp_path: Path) -> None:
    path = write(tmp_path, {"loss.0.debug": LEAF, "outs.1.debug": [LEAF, {"a": None}]}, level="debug")
    path.rename(tmp_path / "debug.json")
    dump = read_dump(tmp_path)
    assert dump.path.name == "debug.json"
    assert dump.entries["loss.0.debug"].items[0].name == "loss.0.debug"
    assert [item.name for item in dump.entries["outs.1.debug"].items] == ["outs.1.debug.0", "outs.1.debug.1.a"]
    assert {item.state for entry in dump.entries.values() for item in entry.items} == {"debug"}


@pytest.mark.parametrize(
    ("leaf", "dtype", "shape", "value"),
    [
        ({"type": "int", "value": 3}, "<class 'int'>", "[]", 3),
        ({"type": "bool", "value": True}, "<class 'bool'>", "[]", True),
        ({"type": "float", "value": 0.5}, "<class 'float'>", "[]", 0.5),
        ({"type": "str", "value": "same"}, "<class 'str'>", "[]", "same"),
        ({"type": "int64", "value": 7}, "<class 'int'>", "[]", 7),
        ({"type": "bool_", "value": False}, "<class 'bool'>", "[]", False),
        ({"type": "mindspore.dtype", "value": "Float32"}, "<class 'str'>", "[]", "Float32"),
        ({"type": "torch.dtype", "value": "torch.float32"}, "<class 'str'>", "[]", "torch.float32"),
        ({"type": "torch.Size", "value": [2, 3]}, "torch.Size", "[2, 3]", None),
        ({"type": "slice", "value": [0, None, 2]}, "slice", "(3,)", None),
        ({"type": "ellipsis", "value": "..."}, "ellipsis", "[]", "..."),
        ({"type": "torch.memory_format", "format": "channels_last"}, "torch.memory_format", "[]", "channels_last"),
        ({"type": "Group", "group_ranks": [0, 1], "group_id": "ab"}, "Group", "[]", "[0, 1], ab"),
        ({"type": "martian.Rock", "value": {"weight": 3}}, "<class 'dict'>", "[]", "{'weight': 3}"),
        ({"type": "martian.Rock"}, "martian.Rock", "[]", ""),
        (5, "<class 'int'>", "[]", 5),
        ("bare", "<class 'str'>", "[]", "bare"),
        ({"type": "int", "value": 10**400}, "<class 'int'>", "[]", math.inf),
    ],
)  # fmt: skip
def test_plain_values(leaf: object, dtype: str, shape: str, value: object, tmp_path: Path) -> None:
    item = one(tmp_path, leaf)
    assert (item.kind, item.dtype, item.shape) == ("value", dtype, shape)
    assert (item.maximum, item.minimum, item.mean, item.norm) == (value,) * 4
    if isinstance(leaf, dict):
        assert item.type == leaf["type"]


def test_nothing(tmp_path: Path) -> None:
    for leaf in (None, {"type": "NoneType", "value": None}):
        item = one(tmp_path, leaf)
        assert (item.kind, item.type, item.dtype, item.shape, item.maximum) == ("null", "", None, None, None)


def test_other_tensors(tmp_path: Path) -> None:
    array = one(
        tmp_path, {"type": "numpy.ndarray", "dtype": "float64", "shape": [], "Max": 1, "Min": True, "Mean": None}
    )
    assert (array.kind, array.shape) == ("tensor", ())
    assert (array.maximum, array.minimum, array.mean, array.norm) == (1, True, None, None)
    p2p = {"class_type": "torch.distributed.P2POp", "tensor": LEAF, "op": "isend", "peer": 1}
    items = items_of(tmp_path, {"input_args": [p2p]})
    assert [item.suffix for item in items] == ["input.0.class_type", "input.0.tensor", "input.0.op", "input.0.peer"]
    odd = one(
        tmp_path, {**LEAF, "shape": ["a", -1], "Max": [1], "dtype": 5, "md5": 7, "data_name": ["x"], "Norm": "nan"}
    )
    assert (odd.kind, odd.shape, odd.maximum, odd.dtype) == ("tensor", "['a', -1]", "[1]", "5")
    assert isinstance(odd.norm, float) and math.isnan(odd.norm)
    assert odd.md5 is None
    assert odd.data_name is None


@pytest.mark.parametrize("odd", [[], {}, [True], "yes", 1, 0.5])
def test_an_odd_requires_grad_costs_itself_alone(odd: object, tmp_path: Path) -> None:
    leaf = {"type": "mindspore.Tensor", "dtype": "Float32", "shape": [2]}
    leaf |= {"Max": 1.0, "Min": 0.0, "Mean": 0.5, "Norm": 1.0, "requires_grad": odd}
    data = {f"Functional.relu.{number}.forward": {"output": [leaf]} for number in range(2)}
    (tmp_path / "dump.json").write_text(json.dumps({"task": "statistics", "level": "L1", "data": data}))
    items = [entry.items[0] for entry in read_dump(tmp_path).entries.values()]
    assert [(item.mean, item.shape, item.requires_grad) for item in items] == [(0.5, (2,), None)] * 2


@pytest.mark.parametrize("sizes", [[10**400], [2**62] * 20, [1] * 65, [2**32, 2**32]])
def test_a_shape_that_no_tensor_has_is_text(sizes: list[int], tmp_path: Path) -> None:
    leaf = {"type": "mindspore.Tensor", "dtype": "Float32", "shape": sizes}
    leaf |= {"Max": 1.0, "Min": 0.0, "Mean": 0.5, "Norm": 1.0}
    data = {f"Functional.relu.{number}.forward": {"output": [leaf]} for number in range(2)}
    (tmp_path / "dump.json").write_text(json.dumps({"task": "statistics", "level": "L1", "data": data}))
    items = [entry.items[0] for entry in read_dump(tmp_path).entries.values()]
    assert [item.shape for item in items] == [str(sizes)] * 2
    assert msprobe_ms.compare(tmp_path, tmp_path).verdict == "incomplete"  # as no tensor has it


def test_non_finite_figures(tmp_path: Path) -> None:
    item = one(tmp_path, {**LEAF, "Max": math.inf, "Min": -math.inf, "Mean": math.nan})
    assert (item.maximum, item.minimum) == (math.inf, -math.inf)
    assert isinstance(item.mean, float)
    assert math.isnan(item.mean)


leaves = st.one_of(
    st.none(),
    st.builds(lambda value: {"type": "int", "value": value}, st.integers(-100, 100)),
    st.builds(
        lambda shape, maximum: {**LEAF, "shape": shape, "Max": maximum},
        st.lists(st.integers(0, 9), max_size=3),
        st.floats() | st.none(),
    ),
)
keys = st.text(st.characters(codec="utf-8", exclude_characters="."), min_size=1).filter(lambda key: key != "type")
trees = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=12
)


def leaf_paths(tree: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The format's rule, said another way: where leaves are and what lies there."""
    if tree is None or "type" in tree:
        yield path, tree
    else:
        for key, member in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from leaf_paths(member, (*path, str(key)))


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    args=st.lists(trees, max_size=3),
    kwargs=st.dictionaries(keys, trees, max_size=3),
    output=st.lists(trees, max_size=2),
)
def test_any_nesting_keeps_every_leaf_in_its_place(tmp_path: Path, args: list, kwargs: dict, output: list) -> None:
    items = items_of(tmp_path, {"input_args": args, "input_kwargs": kwargs, "output": output})
    expected = [
        *(("input", False, *found) for found in leaf_paths(args, ())),
        *(("input", True, *found) for found in leaf_paths(kwargs, ())),
        *(("output", False, *found) for found in leaf_paths(output, ())),
    ]
    assert [(item.state, item.keyword, item.path) for item in items] == [place[:3] for place in expected]
    for item, (*_, leaf) in zip(items, expected, strict=True):
        if leaf is None:
            assert item.kind == "null"
        elif "value" in leaf:
            assert item.maximum == leaf["value"]
        else:
            assert item.shape == tuple(leaf["shape"])
            np.testing.assert_equal(item.maximum, leaf["Max"])


# --- the dump around the items ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "envelope", "expected"),
    [
        ({FORWARD: {"output": [LEAF]}}, {"framework": "mindtorch"}, "mindtorch"),
        ({FORWARD: {"output": [{**LEAF, "type": "torch.Tensor"}]}}, {"framework": "PyTorch"}, "pytorch"),
        ({FORWARD: {"output": [LEAF]}}, {}, "mindspore"),
        ({FORWARD: {"output": [{**LEAF, "type": "torch.Tensor"}]}}, {}, "pytorch"),
        ({"Module.fc.Linear.forward.0": {"output": [LEAF]}}, {}, "mindtorch"),
        ({FORWARD: {"output": [{**LEAF, "type": "Tensor", "data_name": "a.pt"}]}}, {}, "pytorch"),
        ({FORWARD: {"output": [{**LEAF, "type": "Tensor", "data_name": "a.npy"}]}}, {}, "mindspore"),
        ({"Module.fc.Linear.forward.0": {"output": [None]}}, {}, "pytorch"),
        ({"Cell.fc.Dense.forward.0": {"output": [None]}}, {}, "mindspore"),
        ({FORWARD: {"output": [LEAF]}}, {"framework": 5}, "mindspore"),
    ],
)
def test_framework(data: dict, envelope: dict, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"task": "statistics", "level": "L1", "dump_data_dir": None, "data": data, **envelope}))
    dump = read_dump(path)
    assert dump.framework == expected
    assert dump.profile == ("latest" if "framework" in envelope else "v110")


def test_mode(tmp_path: Path) -> None:
    plain, summed = {FORWARD: {"output": [LEAF]}}, {FORWARD: {"output": [LEAF, {**LEAF, "md5": "0a1b2c3d"}]}}
    assert read_dump(write(tmp_path, plain)).mode == "statistics"
    assert read_dump(write(tmp_path, summed)).mode == "md5"
    assert read_dump(write(tmp_path, summed, task="tensor")).mode == "tensor"
    assert read_dump(write(tmp_path, {}, task=None, level=None)).mode == "statistics"


def test_checksums_of_plain_values_in_md5_mode(tmp_path: Path) -> None:
    body = {"input_args": [{"type": "int", "value": 3}, None], "output": [{**LEAF, "md5": "0a1b2c3d"}]}
    assert [item.md5 for item in items_of(tmp_path, body)] == ["6dd28e9b", None, "0a1b2c3d"]  # crc32 of "3"
    dump = read_dump(write(tmp_path, {FORWARD: {"input_args": [{"type": "int", "value": 3}], "output": [LEAF]}}))
    assert [item.md5 for item in dump.entries[FORWARD].items] == [None, None]


def test_tensors_of_another_place_are_told(tmp_path: Path, warnings_logged: pytest.LogCaptureFixture) -> None:
    away = tmp_path / "away/dump_tensor_data"
    away.mkdir(parents=True)
    (tmp_path / "here").mkdir()
    text = json.dumps({"task": "tensor", "level": "L1", "dump_data_dir": str(away), "data": {}})
    for folder in ("here", "away"):
        (tmp_path / folder / "dump.json").write_text(text)
    read_dump(tmp_path / "away")
    assert warnings_logged.text == ""
    read_dump(tmp_path / "here")
    told = f"{tmp_path / 'here/dump.json'}: no dump_tensor_data beside it: tensors are taken from {away}"
    assert told in warnings_logged.text


def test_both_shapes_of_stack(tmp_path: Path) -> None:
    data = {f"Functional.f.{index}.forward": {"output": [LEAF]} for index in range(3)}
    names, frames = list(data), ["File a.py, line 1, in f, \n f(x)", "File b.py, line 2, in g, \n g(x)"]
    old = read_dump(write(tmp_path / "old", data, {names[0]: frames, names[2]: [frames[1]], "unknown": frames}))
    assert [entry.stack for entry in old.entries.values()] == [tuple(frames), (), (frames[1],)]
    new = read_dump(
        write(tmp_path / "new", data, {"0": [[names[0], names[2], "unknown"], frames], "1": "odd", "2": [5, 6]})
    )
    assert [entry.stack for entry in new.entries.values()] == [tuple(frames), (), tuple(frames)]


def test_parents(tmp_path: Path) -> None:
    data = {name: {"output": [LEAF]} for name in ("a.0.0.forward", "a.1.0.forward", "a.2.0.forward", "a.3.0.forward")}
    names = list(data)
    construct = {names[0]: "Cell.b.B.forward.0", names[1]: ["Cell.b.B.forward.0", 3], names[2]: None, "unknown": "x"}
    dump = read_dump(write(tmp_path, data, None, {**construct, "megatron_micro_step_number": 4}))
    assert [entry.parent for entry in dump.entries.values()] == ["Cell.b.B.forward.0"] * 2 + [None] * 2
    assert dump.extra["megatron_micro_step_number"] == 4


def test_damage_beside_the_dump_costs_only_itself(tmp_path: Path, warnings_logged: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path, {FORWARD: {"output": [LEAF]}})
    (tmp_path / "stack.json").write_text('{"0": [["Func')
    (tmp_path / "construct.json").write_text("[1]")
    dump = read_dump(path)
    assert len(dump.entries[FORWARD].items) == 1
    assert "stack.json: not valid JSON" in warnings_logged.text
    assert "construct.json: holds a list; accepted is an object; the dump is read without it" in warnings_logged.text


def test_unknown_keys_are_said(tmp_path: Path, warnings_logged: pytest.LogCaptureFixture) -> None:
    assert len(items_of(tmp_path, {"output": [LEAF], "surprise": [LEAF]})) == 1
    assert "1 unknown keys in entries are left out, first Functional.f.0.forward: surprise" in warnings_logged.text


def test_garbage_collection_is_as_before(tmp_path: Path) -> None:
    path = write(tmp_path, {FORWARD: {"output": [LEAF]}})
    assert gc.isenabled()
    read_dump(path)
    assert gc.isenabled()
    with pytest.raises(DumpFormatError):
        read_dump(tmp_path / "none.json")
    assert gc.isenabled()


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "empty: the dumping process ended before it was written"),
        (" \n", "empty: the dumping process ended before it was written"),
        ('{"data": {"a": ', "not valid JSON: line 1, column 16: expected a value"),
        ("[]", "holds a list; accepted is an object"),
        ("5", "holds a number; accepted is an object"),
        ("{}", "'data' is missing or null; accepted is an object of entries"),
        ('{"data": [1]}', "'data' is a list; accepted is an object of entries"),
        ('{"data": {"Cell.a.A.forward.0": 5}}', "entry 'Cell.a.A.forward.0': is a number; accepted is an object"),
        ('{"data": {"x": [{}]}}', "entry 'x': is a list; accepted is an object"),
        ('{"data": ' + "9" * 5000 + "}", "a number of too many digits"),
        ('{"data": ' * 100_000, "nested deeper than 400 levels"),
    ],
)
def test_files_that_are_no_dump(text: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    path.write_text(text)
    with pytest.raises(DumpFormatError) as caught:
        read_dump(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert complaint in str(caught.value)


def test_missing_and_binary_files(tmp_path: Path) -> None:
    with pytest.raises(DumpFormatError, match=r"dump\.json: cannot be read: No such file or directory"):
        read_dump(tmp_path / "dump.json")
    with pytest.raises(DumpFormatError, match=r"holds no dump; accepted is a folder with dump\.json or debug\.json"):
        read_dump(tmp_path)
    (tmp_path / "dump.json").write_bytes(os.urandom(64) + b"\xff\xfe\x00")
    with pytest.raises(DumpFormatError, match="not valid JSON"):
        read_dump(tmp_path)


def test_nesting_up_to_400(tmp_path: Path) -> None:
    def nested(depth: int) -> object:
        value: object = LEAF
        for _ in range(depth):
            value = [value]
        return {"output": value}

    (item,) = items_of(tmp_path, nested(400))
    assert len(item.path) == 400
    with pytest.raises(DumpFormatError, match=r"dump\.json: entry 'Functional\.f\.0\.forward': nested deeper than 400"):
        items_of(tmp_path, nested(401))


def test_half_characters_are_no_traceback_later(tmp_path: Path) -> None:
    (tmp_path / "dump.json").write_bytes(
        b'{"data": {"Functional.\\ud800.0.forward": {"output": [{"type": "str", "value": "\xed\xa0\x80"}]}}}'
    )
    dump = read_dump(tmp_path)
    (name,) = dump.entries
    assert name == "Functional.?.0.forward"
    name.encode()
    str(dump.entries[name].items[0].maximum).encode()


def test_byte_order_mark_and_other_scripts(tmp_path: Path) -> None:
    (tmp_path / "dump.json").write_bytes(
        b"\xef\xbb\xbf" + '{"data": {"Cell.网络.Dense.forward.0": {"output": [null]}}}'.encode()
    )
    assert list(read_dump(tmp_path).entries) == ["Cell.网络.Dense.forward.0"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "value", "dtype", "shape", "Max", "md5", "Sketch", "data_name", "a"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=json_values, stack=json_values, construct=json_values, envelope=st.dictionaries(
    st.sampled_from(["task", "level", "framework", "dump_data_dir", "data"]), json_values, max_size=3
), name=st.sampled_from([FORWARD, "Cell.a.A.parameters_grad.0", "loss.0.debug", "odd"]))  # fmt: skip
def test_any_json_is_a_dump_or_one_typed_error(
    tmp_path: Path, body: object, stack: object, construct: object, envelope: dict, name: str
) -> None:
    data = {name: {"input_args": body, "output": [body]}, "other": body}
    path = write(tmp_path, **{"data": data, **envelope}, stack=stack, construct=construct)
    try:
        dump = read_dump(path)
    except DumpFormatError as error:
        message = str(error)
    else:
        message = str(path) if isinstance(dump, Dump) else ""
    assert message.startswith(str(path))


# --- what a user points at --------------------------------------------------------------------------------------------


def test_find_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("rank0", "rank", "proc123", "my dump"):
        path = write(tmp_path / folder, {})
        assert find_dumps(path) == {folder: path}
        assert find_dumps(path.parent) == {folder: path}
    monkeypatch.chdir(tmp_path / "rank0")
    assert list(find_dumps(Path("dump.json"))) == ["rank0"]
    assert list(find_dumps(Path())) == ["rank0"]
    (tmp_path / "rank0" / "dump.json").rename(tmp_path / "rank0" / "debug.json")
    assert find_dumps(tmp_path / "rank0") == {"rank0": tmp_path / "rank0" / "debug.json"}


def test_find_ranks_in_numeric_order(tmp_path: Path, warnings_logged: pytest.LogCaptureFixture) -> None:
    for rank in (10, 2, 0, 100, 1):
        write(tmp_path / "step3" / f"rank{rank}", {})
    (tmp_path / "step3" / "logs").mkdir()
    expected = {f"rank{rank}": tmp_path / "step3" / f"rank{rank}" / "dump.json" for rank in (0, 1, 2, 10, 100)}
    assert list(find_dumps(tmp_path / "step3").items()) == list(expected.items())
    assert find_dumps(tmp_path) == expected
    assert f"{tmp_path}: its only step step3 is taken" in warnings_logged.text


def test_nothing_to_find_says_what_would_do(tmp_path: Path) -> None:
    with pytest.raises(
        DumpFormatError, match=r"gone: no such file or folder; accepted are a dump\.json, a rank folder"
    ):
        find_dumps(tmp_path / "gone")
    with pytest.raises(DumpFormatError, match=r"no dump in it: found no folder; accepted are"):
        find_dumps(tmp_path)
    (tmp_path / "a").mkdir()
    with pytest.raises(DumpFormatError, match=r"no dump in it: found folders a; accepted are"):
        find_dumps(tmp_path)
    for step in (0, 10, 2):
        write(tmp_path / f"step{step}" / "rank0", {})
    with pytest.raises(DumpFormatError, match=r"several to choose from: step0, step2, step10; name one of them"):
        find_dumps(tmp_path)


# --- dumps written by mindstudio-probe --------------------------------------------------------------------------------


def test_mindspore_statistics_dump() -> None:
    (path,) = find_dumps(GOLDEN / "mindspore_lenet_L0_statistics" / "step0").values()
    dump = read_dump(path)
    assert (dump.framework, dump.mode, dump.profile, dump.level) == ("mindspore", "statistics", "latest", "L0")
    assert len(dump.entries) == 32
    conv = dump.entries["Cell.conv1.Conv2d.forward.0"]
    assert [item.suffix for item in conv.items] == [*("input.0", "output.0", "parameters.weight", "parameters.bias")]
    raw = json.loads(path.read_text())["data"]["Cell.conv1.Conv2d.forward.0"]["input_args"][0]
    assert (conv.items[0].maximum, conv.items[0].norm, conv.items[0].shape) == (
        raw["Max"],
        raw["Norm"],
        tuple(raw["shape"]),
    )
    assert any("construct" in frame for frame in conv.stack)
    with pytest.raises(MissingTensorError):
        dump.tensors.load(conv.items[0])


@pytest.mark.parametrize(
    ("folder", "profile", "entries", "tensors"),
    [
        ("pytorch_lenet_L0_tensor/proc16325", "latest", 32, 7),
        ("v110_lenet_L1_tensor/rank", "v110", 32, 6),
        ("mindspore_lenet_L1_tensor/proc16362", "latest", 46, 4),
    ],
)
def test_tensor_dumps(folder: str, profile: str, entries: int, tensors: int) -> None:
    dump = read_dump(GOLDEN / folder)
    assert dump.framework == folder.split("_")[0].replace("v110", "pytorch")
    assert (dump.mode, dump.profile, len(dump.entries)) == ("tensor", profile, entries)
    assert any(entry.stack for entry in dump.entries.values())
    assert figures_agree(dump) == tensors


def figures_agree(dump: Dump) -> int:
    """How many tensors of the dump are on disk; each has the shape and the figures recorded for it."""
    found = 0
    for entry in dump.entries.values():
        for item in entry.items:
            try:
                array = dump.tensors.load(item)
            except MissingTensorError:
                continue
            found += 1
            assert array.shape == item.shape
            assert item.maximum is not None
            np.testing.assert_allclose(float(array.max()), float(item.maximum))
            if item.norm is not None:
                norm = np.linalg.norm(array.astype(np.float64))
                np.testing.assert_allclose(norm, float(item.norm), rtol=1e-5, atol=1e-30)
    return found


@pytest.mark.skipif("MSPROBE_GOLDEN" not in os.environ, reason="MSPROBE_GOLDEN names no folder of dumps")
def test_every_golden_dump() -> None:
    paths = sorted(Path(os.environ["MSPROBE_GOLDEN"]).rglob("dump.json"))
    assert paths
    for path in paths:
        dump = read_dump(path)
        raw = json.loads(path.read_text())
        assert list(dump.entries) == list(raw["data"])
        assert all(entry.parsed and str(entry.parsed) == name for name, entry in dump.entries.items())
        assert any(entry.stack for entry in dump.entries.values())
        recorded = path.read_text().count('"data_name"')
        assert figures_agree(dump) == recorded


def test_a_large_dump_is_read_in_seconds(tmp_path: Path) -> None:
    """20,000 entries of three tensors; half a second of the processor is usual."""
    body = {"input_args": [LEAF, LEAF], "input_kwargs": {}, "output": [LEAF]}
    path = write(tmp_path, {f"Functional.f.{index}.forward": body for index in range(20_000)})
    start = time.thread_time()
    dump = read_dump(path)
    assert time.thread_time() - start < 5
    assert sum(len(entry.items) for entry in dump.entries.values()) == 60_000
