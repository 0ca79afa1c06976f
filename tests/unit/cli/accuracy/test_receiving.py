"""What the command lines of both sides refuse, before anything is begun."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from msprobe_ms.cli.main import main


def refused(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """What a command says that exits with 2."""
    assert main(list(map(str, arguments))) == 2
    return capsys.readouterr().err


def test_a_host_needs_an_address_and_secrets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--listen" in refused(capsys, "acc_check")
    assert "msprobe certificates" in refused(capsys, "acc_check", "--listen", "0.0.0.0:59208")
    assert "ca.crt: no such file" in refused(capsys, "acc_check", "--listen", "0.0.0.0:59208", "--tls", tmp_path)
    assert "no such folder" in refused(capsys, "acc_check", "--listen", tmp_path / "none")
    both = refused(capsys, "acc_check", "--listen", tmp_path, "-api_info", tmp_path / "dump.json")
    assert "--api_info_file: not where trainings send their calls" in both


def test_a_host_by_a_file_of_the_family(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for section, why in (
        ({"host": "", "port": 59208}, "accepted is a host and a port"),
        ({"host": "10.0.0.7", "port": 59208, "tls_path": ""}, "msprobe certificates"),
        ({"nfs_path": "/none/calls", "host": "", "port": -1}, "no such folder"),
    ):
        content = {"run_ut": {"is_online": True, "rank_list": [0], "white_list": [], **section}}
        (tmp_path / "config.json").write_text(json.dumps(content))
        assert why in refused(capsys, "-f", "pytorch", "run_ut", "-config", tmp_path / "config.json")


def test_a_sample_is_sent_with_options_that_belong_to_sending(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "train.py"
    script.write_text("raise SystemExit('it ran')")
    assert "only --to takes it" in refused(capsys, "run", "--check", "--tls", tmp_path, script)
    assert "only --check takes it" in refused(capsys, "run", "--to", "localhost:5", script)
    there = refused(capsys, "run", "--check", "--to", "localhost:5", "--profile", "v110", script)
    assert "--profile: acc_check --listen takes it" in there
    assert "msprobe certificates" in refused(capsys, "run", "--check", "--to", "10.0.0.7:5", script)


def test_certificates_are_made_by_one_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["certificates", "-o", str(tmp_path / "new"), "--host", "checker.example.com", "--days", "7"]) == 0
    assert capsys.readouterr().out.count("file: ") == 5
    assert "already" in refused(capsys, "certificates", "-o", tmp_path / "new")
