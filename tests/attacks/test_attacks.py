"""Every console command on every file that once worked against tools like this one, in the place of each it reads.

An attack is tried in the place of one of the files of its form, by one of the commands that read it, all in turn.
``make fuzz`` (MSPROBE_EXAMPLES beyond 25) tries it everywhere, and once more, by every command.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import openpyxl
import pytest
from thorough import sampled

from msprobe_ms.recording.hooks.api_list import _read_list
from msprobe_ms.support.errors import ConfigError
from tests.attacks import sound
from tests.attacks.attacks import FORMS, PLACES, YAML, made
from tests.attacks.attempt import attempt
from tests.attacks.readers import BY_KIND, READERS, Reader, emptied

EVERY = int(os.environ.get("MSPROBE_EXAMPLES", "25")) > 25


def tried(reader: Reader) -> Iterator[tuple[int, str, bytes]]:
    """The attacks that are tried on this reader: its share of those of its form; dump.json has all of its own."""
    alike = [each for each in READERS if FORMS[each.kind] is FORMS[reader.kind]]
    for number, (name, content) in enumerate(FORMS[reader.kind].items()):
        if EVERY or reader.kind == "dump.json" or alike[number % len(alike)] is reader:
            yield number, name, made(content)


def chosen(reader: Reader, folder: Path, number: int) -> list[list[str]]:
    commands = reader.reads(folder)
    return commands if EVERY else [commands[number % len(commands)]]


@pytest.fixture(autouse=True)
def where_it_would_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """What an attack runs or writes lies in the working folder, or beside the one that it was found in."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    yield tmp_path
    assert not any((tmp_path / "here").iterdir()), "an attack ran, or a file was written where nobody asked for it"
    assert {path.name for path in tmp_path.iterdir()} <= {"here", "laid", "outside"}


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.kind)
def test_what_attacks_start_from_is_sound(reader: Reader, tmp_path: Path) -> None:
    folder = emptied(tmp_path / "laid")
    reader.lay(folder)
    for command in reader.reads(folder):
        found = attempt(command)
        assert found.status == (2 if reader.kind == "config" else 0), found.out + found.err
        assert reader.kind != "config" or "no_such_script.py: no such script" in found.err


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.kind)
def test_attacks(reader: Reader, tmp_path: Path) -> None:
    for number, name, content in tried(reader):
        folder = emptied(tmp_path / "laid")
        reader.lay(folder).write_bytes(content)
        for command in chosen(reader, folder, number):
            try:
                attempt(command)
            except AssertionError as error:
                raise AssertionError(f"attack {name!r}: {error}") from None


@pytest.mark.parametrize("reader", sampled(READERS, set(READERS[::2]).__contains__), ids=lambda reader: reader.kind)
def test_what_is_no_file_is_not_waited_for(reader: Reader, tmp_path: Path) -> None:
    for number, (name, put) in enumerate(PLACES.items()):
        folder = emptied(tmp_path / "laid")
        path = reader.lay(folder)
        path.unlink()
        put(path)
        for command in chosen(reader, folder, number):
            try:
                attempt(command)
            except AssertionError as error:
                raise AssertionError(f"{name}: {error}") from None


@pytest.mark.parametrize("name", YAML)
def test_api_lists(name: str, tmp_path: Path) -> None:
    path = emptied(tmp_path / "laid") / "apis.yaml"
    path.write_bytes(YAML[name])
    try:
        for key, names in _read_list(path).items():
            assert isinstance(key, str) and all(isinstance(each, str) for each in names)
    except ConfigError as error:
        assert str(error).startswith(f"{path}: ") and len(str(error)) < 30_000  # noqa: PT017 - both ends are right


@pytest.mark.parametrize("kind", ["dump.json", "stack.json", "construct.json", "journal", "npy", "pt", "bin"])
def test_links_do_not_lead_out_of_a_dump(kind: str, tmp_path: Path) -> None:
    """What lies outside is sound, and would show in the report."""
    folder = emptied(tmp_path / "laid")
    path = BY_KIND[kind].lay(folder)
    shutil.move(path, tmp_path / "outside")
    path.symlink_to(tmp_path / "outside")
    if kind == "stack.json":
        (tmp_path / "outside").write_text(json.dumps({"0": [["Cell.fc1.Dense.forward.0"], ["outside"]]}))
    if kind == "construct.json":
        (tmp_path / "outside").write_text(json.dumps({"Cell.fc1.Dense.forward.0": "outside"}))
    found = attempt([*BY_KIND[kind].reads(folder)[-1 if kind == "journal" else 0], "--csv"])
    assert "a link that leaves" in found.out + found.err or (kind == "journal" and found.status == 2)
    reports = [report.read_text() for report in folder.glob("out/*.csv")]
    assert not any("outside" in report for report in reports)


@pytest.mark.parametrize("kind", ["kernel npy", "mapping.csv", "statistic.csv", "execution order", "graph"])
def test_links_do_not_lead_out_of_a_kernel_dump(kind: str, tmp_path: Path) -> None:
    folder = emptied(tmp_path / "laid")
    path = BY_KIND[kind].lay(folder)
    shutil.move(path, tmp_path / "outside")
    path.symlink_to(tmp_path / "outside")
    found = attempt(["index", f"{folder}/target", "-o", f"{folder}/out"])
    (folder / "golden" / "rank_0").rename(folder / "whole")
    index = folder / "out" / "step0" / "rank0" / "dump.json"
    if kind in ("kernel npy", "statistic.csv", "mapping.csv"):
        assert "leave" in found.out + found.err
    if kind == "kernel npy":
        assert path.name not in index.read_text()
    if kind == "execution order":
        assert found.status == 0


def test_tensors_that_are_cut_are_not_made_up(tmp_path: Path) -> None:
    """A header that promises more than is there takes no memory: asked with the system's own limit in `attempt`."""
    folder = emptied(tmp_path / "laid")
    path = BY_KIND["npy"].lay(folder)
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (1 << 40,)})
        file.write(bytes(48))
    found = attempt(BY_KIND["npy"].reads(folder)[0])
    assert "takes 4398046511104 bytes, 48 are there" in found.out + found.err


def formulas_in(folder: Path) -> Iterator[str]:
    """Cells that a spreadsheet program would compute."""
    for path in folder.rglob("*.csv"):
        with path.open(newline="", encoding="utf-8") as file:
            for cell in (cell for row in csv.reader(file) for cell in row):
                if cell[:1] in ("=", "+", "-", "@", "\t", "\r") and not _is_number(cell):
                    yield cell
    for path in folder.rglob("*.xlsx"):
        for sheet in openpyxl.load_workbook(path).worksheets:
            yield from (str(cell.value) for row in sheet.iter_rows() for cell in row if cell.data_type == "f")
            yield from (str(cell.hyperlink) for row in sheet.iter_rows() for cell in row if cell.hyperlink)


def _is_number(text: str) -> bool:
    try:
        float(text.removesuffix("%"))
    except ValueError:
        return False
    return True


_FORMULAS = [
    (kind, name)
    for kind in ("dump.json", "npz", "safetensors", "csv table", "xlsx table")
    for name in FORMS[kind]
    if "formula" in name or "link" in name or "markup" in name
]


@pytest.mark.parametrize(("kind", "name"), [*_FORMULAS, ("precheck table", "checks with formulas")])
def test_reports_compute_nothing(kind: str, name: str, tmp_path: Path) -> None:
    folder = emptied(tmp_path / "laid")
    BY_KIND[kind].lay(folder).write_bytes(made(FORMS[kind][name]))
    for command in BY_KIND[kind].reads(folder):
        attempt(command)
    assert list((folder / "out").iterdir())
    assert list(formulas_in(folder / "out")) == []


def test_texts_beside_the_terminal_are_printable_too(tmp_path: Path) -> None:
    """Advice, node reports and mappings are shown with cat, pages with a browser that does as it is told."""
    folder = emptied(tmp_path / "laid")
    BY_KIND["dump.json"].lay(folder).write_bytes(made(FORMS["dump.json"]["escapes in a name"]))
    sides = ["-tp", f"{folder}/target", "-gp", f"{folder}/golden", "-o", f"{folder}/out"]
    attempt(["compare", *sides, "-f", "-lm"])
    attempt(["compare", *sides, "--profile", "v110"])
    (name,) = json.loads(made(FORMS["dump.json"]["escapes in a name"]))["data"]
    attempt(["compare", *sides, "--node", name])
    attempt(["view", f"{folder}/target", "-o", f"{folder}/out"])
    texts = [path for path in (folder / "out").iterdir() if path.suffix in (".txt", ".yaml", ".json", ".html")]
    assert {path.suffix for path in texts} >= {".txt", ".json", ".html"}
    assert any(path.name.startswith("dump_view") for path in texts)
    for path in texts:
        text = re.sub(
            r"<(script|style)>.*?</\1>", "", path.read_text(encoding="utf-8"), flags=re.DOTALL
        )  # the page's own
        for line in text.split("\n"):
            assert line.isprintable(), (path, line)


def test_terminals_that_know_no_such_characters(tmp_path: Path) -> None:
    folder = emptied(tmp_path / "laid")
    BY_KIND["dump.json"].lay(folder).write_bytes(
        json.dumps(sound.dump_json(names=("Cell.fc1.Dense.forward.0", "Cell.层.Dense.forward.0"))).encode()
    )
    command = [sys.executable, "-c", "import sys; from msprobe_ms.cli import main; sys.exit(main())"]
    found = subprocess.run(
        [*command, *BY_KIND["dump.json"].reads(folder)[0]], env={**os.environ, "PYTHONIOENCODING": "ascii"},
        cwd=folder, capture_output=True, check=False,
    )  # fmt: skip
    assert found.returncode == 0 and rb"\u5c42" in found.stdout, (found.stdout, found.stderr.decode())


def test_names_of_bytes_that_are_no_text(tmp_path: Path) -> None:
    folder = emptied(tmp_path / "laid")
    sound.dump(folder / "golden")
    sound.dump(folder / "target" / os.fsdecode(b"rank\xff0"))
    found = attempt(["compare", "-tp", f"{folder}/target", "-gp", f"{folder}/golden", "-o", f"{folder}/out"])
    assert found.status == 0
