"""The samples: each file has its purpose and is found by all its names, each key its meaning."""

from __future__ import annotations

from pathlib import Path

import pytest

from msprobe_ms.config.sample_files import FOLDER, Sample, key_lines, sample, samples
from msprobe_ms.support.errors import UsageError

DOCUMENT = (Path(__file__).parents[3] / "docs" / "config.md").read_text(encoding="utf-8")


def test_every_file_is_there_once() -> None:
    assert sorted(samples()) == sorted(file.stem for file in FOLDER.glob("*.json"))
    names = [name for found in samples().values() for name in {found.name, *found.names}]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("found", samples().values(), ids=lambda found: found.name)
def test_a_sample_is_found_by_its_names_and_explains_its_keys(found: Sample) -> None:
    for name in (found.name, f"{found.name}.json", found.name.upper(), *found.names):
        assert sample(name) == found
    lines = list(key_lines(found.path))
    assert len(lines) >= 4
    assert all(len(line.split(maxsplit=1)) == 2 for line in lines)


def test_what_the_page_proposes_is_a_sample() -> None:
    table = DOCUMENT.split("## Which one do I want?")[1].split("## Keys")[0]
    named = {cell.strip("`").removesuffix(".json") for cell in table.split() if cell.strip("`:,").endswith(".json`")}
    assert {name.strip("`:,").removesuffix(".json") for name in named} <= set(samples())


def test_a_name_of_none_is_refused() -> None:
    with pytest.raises(UsageError, match=r"'zzz' is no sample; accepted are statistics, overflow"):
        sample("zzz")
