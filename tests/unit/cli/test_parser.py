"""A misspelt option or command: what may have been meant is said, with the usage of the command itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from msprobe_ms.cli.main import main


@pytest.mark.parametrize(
    ("arguments", "usage", "text"),
    [
        (["compar"], "msprobe ", "invalid choice: 'compar' (did you mean compare?)"),
        (["zzz"], "msprobe ", "invalid choice: 'zzz' (choose from "),
        (["compare", "--lm", "x"], "msprobe compare ", "unrecognized arguments: --lm (did you mean -lm?) x"),
        (["compare", "--output-path=x"], "msprobe compare ", "--output-path=x (did you mean --output_path?)"),
        (["compare", "--zzz"], "msprobe compare ", "unrecognized arguments: --zzz\n"),
        (["run", "--levl", "L0", "x.py"], "msprobe run ", "unrecognized arguments: --levl (did you mean --level?)"),
        (["compare", "--profile", "lates"], "msprobe compare ", "(did you mean latest?)"),
        (["--vrsion"], "msprobe ", "unrecognized arguments: --vrsion (did you mean --version?)"),
    ],
)
def test_what_may_have_been_meant(
    arguments: list[str], usage: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert told.startswith(f"usage: {usage}")
    assert text in told


@pytest.mark.parametrize("before", [["--step", "0", "--task=statistics"], ["-stp", "1", "--"], ["--lev", "L0"]])
@pytest.mark.parametrize(
    "arguments",
    [
        ["--levl", "x", "--lm"],
        ["-s", "5", "--s", "--c=1", "-h", "--help", "--version"],  # the beginnings of several options of ours
        ["--", "-m", "--step", "nonsense"],
        ["x", "--", "--exec", "--lang"],
        ["-", "", "---"],
    ],
)
def test_what_follows_a_script_is_the_scripts_own(
    before: list[str], arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text("import sys\nprint(sys.argv[1:])\n")
    assert main(["run", "--dump_path", str(tmp_path), *before, str(tmp_path / "train.py"), *arguments]) == 0
    assert f"{arguments}\n" in capsys.readouterr().out


def test_a_folder_that_cannot_be_written_is_known_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit):  # nothing is read: there is no such dump
        main(["compare", "-tp", "nowhere", "-gp", "nowhere", "-o", str(tmp_path / "file" / "out")])
    assert "error: argument -o/--output_path: " in capsys.readouterr().err


@pytest.mark.parametrize("command", ["config_check -c a b", "compare_weights a b", "grad_compare a b"])
def test_help_says_that_the_file_is_needed_where_the_command_cannot_do_without(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name, *given = command.split()
    with pytest.raises(SystemExit):
        main([name, "-h"])
    told = " ".join(capsys.readouterr().out.split())
    assert "[-lm YAML]" in told and "-lm YAML, --layer_mapping YAML renames of children; `msprobe compare" in told
    assert main([name, *given, "-lm"]) == 2
    assert f"{name}: -lm needs a file: " in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["compare", "-h"])
    assert "[-lm [YAML]]" in " ".join(capsys.readouterr().out.split()), "which finds renames itself"
