"""What is written has its permissions from the moment it is made: by default, under any umask, and as configured."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from msprobe_ms.cli.main import main
from msprobe_ms.config import load_config
from msprobe_ms.dump.writing.export import recover
from msprobe_ms.dump.writing.writer import ERROR_LOG, DumpStore, EntryPart
from msprobe_ms.pytorch import PrecisionDebugger
from msprobe_ms.recording.output.error_log import ErrorLog
from msprobe_ms.support.errors import ConfigError
from msprobe_ms.support.files import DEFAULT, Permissions, replacing
from tests.attacks import sound


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def modes(root: Path) -> tuple[set[int], set[int]]:
    """The modes of all files and of all folders, ``root`` included."""
    inside = [root, *root.rglob("*")]
    return (
        {stat.S_IMODE(path.stat().st_mode) for path in inside if path.is_file()},
        {stat.S_IMODE(path.stat().st_mode) for path in inside if path.is_dir()},
    )


def trained(folder: Path, mask: int, **keys: Any) -> Path:
    """Record a step of task tensor below folders that are not there yet."""
    path = folder / "not" / "there" / "yet"
    settings = {"task": "tensor", "level": "mix", "dump_path": str(path), "step": [0, 1], **keys}
    (folder / "config.json").write_text(json.dumps(settings))
    net = torch.nn.Linear(2, 2)
    with umask(mask):
        debugger = PrecisionDebugger(folder / "config.json")
        for _ in range(2):
            debugger.start(net)
            net(torch.ones(1, 2)).sum().backward()
            debugger.stop()
            debugger.step()
    assert {path.name for path in path.rglob("*.json")} == {"dump.json", "stack.json", "construct.json"}
    assert any(path.rglob("*.pt"))
    return folder / "not"


@pytest.mark.parametrize(
    ("mask", "file", "folder"), [(0o000, 0o640, 0o750), (0o022, 0o640, 0o750), (0o077, 0o600, 0o700)]
)
def test_by_default_a_umask_only_takes_away(mask: int, file: int, folder: int, tmp_path: Path) -> None:
    assert modes(trained(tmp_path, mask)) == ({file}, {folder})


@pytest.mark.parametrize(
    ("text", "folder"), [("0600", 0o700), ("0640", 0o750), ("0644", 0o755), ("0660", 0o770), ("0664", 0o775)]
)
def test_what_is_configured_holds_exactly(text: str, folder: int, tmp_path: Path) -> None:
    mask = 0o077 if text != "0600" else 0o000
    assert modes(trained(tmp_path, mask, permissions=text)) == ({int(text, 8)}, {folder})


@pytest.mark.parametrize(
    "value", [640, 0o640, "640", "rw-r-----", "0666", "0777", "0640 ", "06400", "", True, ["0640"]]
)
def test_what_is_no_mode_is_refused(value: Any, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"dump_path": str(tmp_path), "permissions": value}))
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path / "config.json")
    assert str(caught.value) == (
        f"{tmp_path}/config.json: permissions: {json.dumps(value)} is not accepted; use the octal mode of files as a "
        'text: "0600", "0640", "0644", "0660", or "0664"'
    )


def test_folders_that_exist_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump").chmod(0o777)
    Permissions.of_files(0o600).make_folder(tmp_path / "dump" / "step0" / "rank0")
    assert [stat.S_IMODE((tmp_path / path).stat().st_mode) for path in ("dump", "dump/step0", "dump/step0/rank0")] == [
        0o777, 0o700, 0o700,
    ]  # fmt: skip


def store(folder: Path, permissions: Permissions) -> DumpStore:
    return DumpStore(folder, task="tensor", level="L0", framework="pytorch", tensors=True, permissions=permissions)


def errors(dump: DumpStore) -> ErrorLog:
    return ErrorLog(dump.files, set(), dump.mark_incomplete)


def test_journal_log_and_what_is_recovered(tmp_path: Path) -> None:
    """A killed process's dump is recovered by somebody with another umask."""
    with umask(0o000):
        killed = store(tmp_path / "rank0", Permissions.of_files(0o660))
        killed.entry(EntryPart("Cell.a.B.forward.0", [("output", "[]")]))
        killed.tensor("a.npy", lambda file: file.write(b"a") and None)
        errors(killed).write("odd \x1b[31m\n2026")
    with umask(0o077):
        list(recover(tmp_path))
    assert modes(tmp_path / "rank0") == ({0o660}, {0o770})
    assert (tmp_path / "rank0" / ERROR_LOG).read_text().endswith(" odd \\x1b[31m\\n2026\n")


def test_an_error_log_that_is_a_link_is_not_written(tmp_path: Path) -> None:
    """In a folder that others may write to, it could lead to any file of the user's."""
    (tmp_path / "precious").write_text("kept")
    dump = store(tmp_path / "rank0", DEFAULT)
    (dump.folder / ERROR_LOG).symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="symbolic links"):
        errors(dump).write("odd")
    assert (tmp_path / "precious").read_text() == "kept"


def test_a_file_is_never_wider_than_it_will_be(tmp_path: Path) -> None:
    with umask(0o000), replacing(tmp_path / "a", Permissions.of_files(0o600)) as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600


@pytest.mark.parametrize("suffix", ["--csv", "--xlsx"])
def test_reports_and_mappings(suffix: str, tmp_path: Path) -> None:
    for side in ("target", "golden"):
        sound.dump(tmp_path / side)
    sides = ["-tp", f"{tmp_path}/target", "-gp", f"{tmp_path}/golden"]
    with umask(0o000):
        assert main(["compare", *sides, "-o", f"{tmp_path}/new/out", "-lm", suffix]) == 0
        assert main(["compare", *sides, "-o", f"{tmp_path}/new/out", "--node", "fc1"]) == 0
        data = f"{tmp_path}/target/dump_tensor_data"
        assert main(["convert", data, "--to", "csv", "-o", f"{tmp_path}/new/converted"]) == 0
        assert main(["overflow_check", "-i", f"{tmp_path}/target", "-o", f"{tmp_path}/new/out"]) == 0
        sound.kernels(tmp_path / "raw")
        assert main(["index", f"{tmp_path}/raw", "-o", f"{tmp_path}/new/index"]) == 0
    assert modes(tmp_path / "new") == ({0o640}, {0o750})
    assert {path.suffix for path in (tmp_path / "new").rglob("*") if path.is_file()} >= {
        suffix.replace("--", "."),
        ".json",
        ".yaml",
        ".txt",
    }
