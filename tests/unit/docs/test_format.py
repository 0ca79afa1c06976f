"""docs/format.md says what the code writes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import msprobe_ms
from msprobe_ms.dump import names
from msprobe_ms.dump.kernels.kernel_files import LEADING
from msprobe_ms.dump.kernels.reduce import reduce
from msprobe_ms.dump.writing.journal import MAGIC
from msprobe_ms.dump.writing.json_text import TensorLeaf, value_text
from msprobe_ms.support.errors import UsageError

PAGE = (Path(msprobe_ms.__file__).parents[1] / "docs" / "format.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    """A section of the page, without those below it."""
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#+ )", PAGE, re.MULTILINE | re.DOTALL)
    assert found, title
    return found[1]


def test_the_keys_of_a_tensor_are_in_the_order_of_the_page() -> None:
    (example,) = re.findall(r"^```json\n(.*?)^```", section("Tensor leaves"), re.MULTILINE | re.DOTALL)
    shown = json.loads(example)
    leaf = TensorLeaf(
        shown["type"], shown["dtype"], shown["shape"], shown["Max"], shown["Min"], shown["Mean"], shown["Norm"],
        shown["requires_grad"], shown["data_name"], shown["md5"],
    )  # fmt: skip
    assert list(json.loads(value_text(leaf, 0)).items()) == list(shown.items())


def test_the_keys_of_our_own_are_those_of_the_code() -> None:
    told = re.findall(r"^\| `(\w+)` \|", section("Keys of our own"), re.MULTILINE)
    assert told == [
        names.RECOMPUTE,
        names.ATTRIBUTES,
        names.SCOPE,
        names.SKETCH,
        names.STRIDE,
        names.UNWRITTEN,
        names.RECOVERED,
        names.INCOMPLETE,
    ]


def test_names_of_tensor_files_are_names_of_items() -> None:
    (block,) = re.findall(r"^```text\n(.*?)^```", section("Tensor file names"), re.MULTILINE | re.DOTALL)
    files = block.split()
    assert len(files) == 5
    for file in files:
        stem = file.removesuffix(".npy")
        entry = next(filter(names.parse_entry, names.beginnings(stem)))
        rest = stem.removeprefix(entry).removeprefix(".").split(".")
        assert names.data_name(entry, "", tuple(part for part in rest if part), ".npy") == file


def test_the_page_has_every_statistic_of_kernels() -> None:
    with pytest.raises(UsageError, match="accepted are") as refused:
        reduce([], ["none of them"])
    told = section("statistic.csv")
    for category in str(refused.value).partition("accepted are ")[2].split(", "):
        assert f"`{category}`" in told
    assert ", ".join(LEADING) in told


def test_a_journal_begins_as_the_page_says() -> None:
    assert f"`{MAGIC.decode().rstrip()}`" in section("The journal")
