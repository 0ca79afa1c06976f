"""What a comparison costs grows with the size of the dumps alone: shapes on which some step could take its square."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from thorough import thorough

from msprobe_ms.dump.names import LONGEST_NAME, MOST_PARTS
from tests.attacks import sound
from tests.attacks.attempt import Outcome, attempt
from tests.attacks.readers import emptied

#: Entries, or items, of each dump: where all are set beside all, a step takes minutes.
COUNT = 1_200

#: Entries and what encloses each, if the value of their results is this.
Shape = Callable[[float], tuple[dict[str, Any], dict[str, Any]]]


def call(given: float = 0.0, taken: float = 0.0) -> dict[str, Any]:
    return {"input_args": [leaf(taken)], "input_kwargs": {}, "output": [leaf(given)]}


def leaf(value: float) -> dict[str, Any]:
    return {"type": "mindspore.Tensor", "dtype": "Float32", "shape": [2], "Max": 1 + value, "Min": 0.0, "Mean": 0.5,
            "Norm": 1 + value, "requires_grad": False}  # fmt: skip


def modules(value: float, name: str = "a") -> dict[str, Any]:
    return {f"Cell.{name}{number}.D.forward.0": call(value, value) for number in range(COUNT)}


def one_api(value: float) -> tuple[dict[str, Any], dict[str, Any]]:
    return {f"Mint.add.{number}.forward": call(value, value) for number in range(COUNT)}, {}


def one_container(value: float) -> tuple[dict[str, Any], dict[str, Any]]:
    data = {f"Cell.layers.{number}.Dense.forward.0": call(value) for number in range(COUNT)}
    return data, dict.fromkeys(data, "Cell.layers.List.forward.0")


def one_path(value: float) -> tuple[dict[str, Any], dict[str, Any]]:
    return {f"Cell.a.D{number}.forward.0": call(value) for number in range(COUNT)}, {}


def one_call(value: float) -> tuple[dict[str, Any], dict[str, Any]]:
    leaves = [leaf(value) for _ in range(COUNT)]
    return {"Mint.add.0.forward": {"input_args": leaves, "input_kwargs": {}, "output": leaves}}, {}


def one_result_alike(value: float) -> tuple[dict[str, Any], dict[str, Any]]:
    leaves = [leaf(0.0) for _ in range(COUNT)], [leaf(value) for _ in range(COUNT)]
    return {"Mint.add.0.forward": {"input_args": leaves[0], "input_kwargs": {}, "output": leaves[1]}}, {}


def a_chain(value: float) -> tuple[dict[str, Any], dict[str, Any]]:
    data = modules(value)
    return data, dict(zip(data, [*data][1:], strict=False))


def a_circle(value: float) -> tuple[dict[str, Any], dict[str, Any]]:
    data = modules(value)
    return data, dict(zip(data, [*data][1:] + [*data][:1], strict=True))


def other_names(value: float) -> tuple[dict[str, Any], dict[str, Any]]:
    data = modules(value, "ab"[bool(value)])
    return data, dict(zip(data, [*data][1:] + [*data][:1], strict=True))


def deep_names(value: float) -> tuple[dict[str, Any], dict[str, Any]]:
    path = "a." * (MOST_PARTS - 50)
    return {f"Cell.{path}b{number}.D.forward.0": call(value) for number in range(COUNT // 10)}, {}


def names_in_names(value: float) -> tuple[dict[str, Any], dict[str, Any]]:
    names = [f"Cell.{'a.' * depth}D.forward.0" for depth in range(1, MOST_PARTS // 4)]
    return {name: call(value) for name in names}, dict(zip(names[1:], names, strict=False))


SHAPES: list[Shape] = [
    one_api, one_container, one_path, one_call, one_result_alike, a_chain, a_circle, other_names, deep_names,
    names_in_names,
]  # fmt: skip


def laid(folder: Path, data: dict[str, Any], construct: dict[str, Any]) -> None:
    folder.mkdir()
    content = {"task": "statistics", "level": "mix", "framework": "mindspore", "dump_data_dir": None, "data": data}
    (folder / "dump.json").write_text(json.dumps(content))
    (folder / "construct.json").write_text(json.dumps(construct))


def compared(folder: Path, *more: str, **limits: float) -> Outcome:
    sides = ["-tp", f"{folder}/target", "-gp", f"{folder}/golden"]
    return attempt(["compare", *sides, "-o", f"{folder}/out", "--csv", *more], **limits)


@pytest.mark.parametrize(
    ("shape", "more"),
    [
        case if number % 2 == bool(more) else thorough(case)
        for number, shape in enumerate(SHAPES)
        for more in ((), ("-lm", "--no-html"))
        for case in [(shape, more)]
    ],
)
def test_costs_grow_with_the_size(shape: Shape, more: tuple[str, ...], tmp_path: Path) -> None:
    folder = emptied(tmp_path / "laid")
    laid(folder / "target", *shape(0.25))
    laid(folder / "golden", *shape(0.0))
    assert compared(folder, *more, seconds=4.0).status == 0


@pytest.mark.parametrize("shape", [one_call, a_circle, deep_names], ids=lambda shape: shape.__name__)
def test_costs_of_exports_grow_with_the_size(shape: Shape, tmp_path: Path) -> None:
    folder = emptied(tmp_path / "laid")
    laid(folder / "target", *shape(0.25))
    laid(folder / "golden", *shape(0.0))
    sides = ["-tp", f"{folder}/target", "-gp", f"{folder}/golden"]
    assert attempt(["export", *sides, "--to", "model-explorer", "-o", f"{folder}/out"], seconds=5.0).status == 0


def test_many_ranks_and_numbers_of_many_digits(tmp_path: Path, one_worker: None) -> None:
    folder = emptied(tmp_path / "laid")
    for side in ("target", "golden"):
        for number in range(COUNT // 4):
            (folder / side / "step0" / f"rank{number}").mkdir(parents=True)
        for name in ("rank0", f"rank{'9' * 200}"):
            shutil.rmtree(folder / side / "step0" / name, ignore_errors=True)
            sound.dump(folder / side / "step0" / name)
    found = compared(folder, seconds=4.0)
    assert found.status == 0 and "2 pairs of dumps: 2 consistent" in found.out


@pytest.mark.parametrize(
    "name", [f"Cell.{'a.' * 300_000}D.forward.0", f"Mint.{'a' * (LONGEST_NAME + 1)}.0.forward", "." * MOST_PARTS]
)
def test_names_that_are_too_long_are_refused_at_once(name: str, tmp_path: Path) -> None:
    folder = emptied(tmp_path / "laid")
    laid(folder / "target", {name: call()}, {})
    laid(folder / "golden", {"Cell.a.D.forward.0": call()}, {})
    for more in ((), ("-lm",), ("-f",), ("--node", "fc")):
        found = compared(folder, *more)
        assert found.status == 2
        assert "is too long; accepted are names of at most 1000 parts and 10000 characters" in found.err
        assert len(found.err) < 500


def test_a_parent_whose_name_is_too_long_is_left_out(tmp_path: Path) -> None:
    folder = emptied(tmp_path / "laid")
    name = "Cell.a.D.forward.0"
    laid(folder / "target", {name: call()}, {name: f"Cell.{'a.' * 300_000}D.forward.0"})
    laid(folder / "golden", {name: call()}, {})
    found = compared(folder, "-lm")
    assert found.status == 0 and "construct.json: 1 calls lie in one whose name is too long" in found.err


def test_the_longest_names_are_read(tmp_path: Path) -> None:
    folder = emptied(tmp_path / "laid")
    deep = f"Cell.{'a.' * (MOST_PARTS - 4)}D.forward.0"
    long = f"Mint.{'a' * (LONGEST_NAME - 15)}.0.forward"
    for side in ("target", "golden"):
        laid(folder / side, {deep: call(), long: call()}, {})
    assert "4 values compared" in compared(folder).out


def test_keys_that_are_whole_texts_are_told_apart_by_a_digest(tmp_path: Path) -> None:
    folder = emptied(tmp_path / "laid")
    texts = ["word. " * 3_000 + end for end in "ab"]
    for side in ("target", "golden"):
        data = {"Mint.add.0.forward": {"input_args": [{text: leaf(0.0) for text in texts}], "input_kwargs": {}}}
        laid(folder / side, data, {})
    found = compared(folder)
    assert found.status == 0 and "2 values compared" in found.out


@pytest.mark.parametrize("flag", ["-lm", "-cm", "-dm", "-am"])
def test_mapping_files_have_names_of_the_same_length(flag: str, tmp_path: Path) -> None:
    folder = emptied(tmp_path / "laid")
    for side in ("target", "golden"):
        sound.dump(folder / side)
    long = "a." * 5_000 + "b"
    text = {"-lm": f"TopLayer:\n  {long}: a\n", "-am": f"- ms_api: {long}\n  pt_api: a.b\n"}.get(flag, f"a: {long}\n")
    (folder / "mapping.yaml").write_text(text)
    found = compared(folder, flag, f"{folder}/mapping.yaml")
    assert found.status == 2 and "is too long; accepted are names of at most 1000 parts" in found.err
