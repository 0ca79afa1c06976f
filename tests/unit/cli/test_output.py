"""What a command cannot print changes no result: full disks, closed pipes and streams, on both outputs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from repository import ROOT
from thorough import sampled

from tests.attacks import sound

pytestmark = pytest.mark.processes

PROGRAM = f"{sys.executable} -m msprobe_ms"

#: Shell redirections, and whether standard error is still there to tell.
LOST = {
    ">/dev/full": True,
    "2>/dev/full": False,
    ">/dev/full 2>&1": False,
    ">&-": True,
    "2>&-": False,
    ">&- 2>&-": False,
    "| true": True,
    "| head -n 1 >/dev/null": True,
    "2>&1 | true": False,
}


#: Commands and their statuses; each takes and prints something else.
COMMANDS = {
    "a divergence": ("compare -tp target -gp golden -o out --exit-code", 1),
    "none": ("compare -tp golden -gp golden -o out --exit-code", 0),
    "an error": ("compare -tp absent -gp golden -o out", 2),
    "many ranks": ("compare -tp many -gp other -o out --exit-code", 1),
    "a node": ("compare -tp target -gp golden -o out --node fc2", 0),
    "weights": ("compare_weights net.npz net.safetensors -o out", 0),
    "conversion": ("convert golden/dump_tensor_data --to csv -o out --overwrite", 0),
    "help": ("compare -h", 0),
    "a mistake": ("compare --no-such-option", 2),
    "nothing": ("", 2),
    "a version": ("--version", 0),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lost")
    content = sound.dump_json()
    for name in ("target", "golden", "many/step0/rank0", "many/step0/rank1", "other/step0/rank0", "other/step0/rank1"):
        sound.dump(folder / name)
    content["data"]["Cell.fc2.Dense.forward.0"]["output"][0].update(Max=9.0, Norm=9.0)
    for name in ("target", "other/step0/rank1"):
        (folder / name / "dump.json").write_text(json.dumps({**content, "task": "statistics"}))
    (folder / "net.npz").write_bytes(sound.npz())
    (folder / "net.safetensors").write_bytes(sound.safetensors())
    return folder


def shell(line: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    return subprocess.run(
        ["bash", "-c", f"{line}; exit ${{PIPESTATUS[0]}}"], cwd=folder, env=environment, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip


_SAMPLE = ("a divergence", "an error", "many ranks", "a mistake")


@pytest.mark.parametrize("name", sampled(COMMANDS, _SAMPLE.__contains__))
def test_no_status_depends_on_what_can_be_printed(name: str, folder: Path) -> None:
    arguments, status = COMMANDS[name]
    for number, (lost, can_tell) in enumerate(LOST.items()):
        if name != "a divergence" and number % 4 != len(name) % 4:
            continue  # each of these is lost in some ways
        found = shell(f"{PROGRAM} {arguments} {lost}", folder)
        assert found.returncode == status, (lost, found.stderr)
        assert "Traceback" not in found.stderr and "Exception ignored" not in found.stderr, (lost, found.stderr)
        told = found.stderr.count("standard output: No space left on device")
        assert told == (lost == ">/dev/full" and can_tell and name not in ("an error", "a mistake")), lost


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_pipe_whose_reader_has_seen_enough(unbuffered: str, folder: Path) -> None:
    found = shell(
        f"{PROGRAM} {COMMANDS['a divergence'][0]} | grep -q DIVERGENT",
        folder,
        PYTHONUNBUFFERED=unbuffered,
        MSPROBE_LOG_LEVEL="2",
    )
    assert (found.returncode, found.stderr) == (1, "")
