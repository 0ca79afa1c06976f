"""``msprobe merge_result``: the tables of many ranks side by side."""

from __future__ import annotations

import shutil
from pathlib import Path

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rank_dumps import write_run

from msprobe_ms.cli.main import main
from msprobe_ms.comparison.many.merge_tables import _TABLE, find_tables
from msprobe_ms.comparison.reporting.files import write_table
from msprobe_ms.comparison.reporting.profiles.base import BENCH_TITLES, NPU_TITLES

STAMP = "20260102030405"
RELATIVE = "NormRelativeErr"
FC = "Cell.fc.Dense.forward.0.output.0"


def compare(folder: Path, *arguments: str, ranks: int = 3, steps: int = 1) -> Path:
    good = write_run(folder / "good", ranks=ranks, steps=steps)
    bad = write_run(folder / "bad", ranks=ranks, steps=steps, faulty=1)
    out = folder / "out"
    assert main(["compare", "-tp", str(bad), "-gp", str(good), "-o", str(out), *arguments]) == 0
    return out


def merge(folder: Path, config: str) -> dict[str, list[tuple[object, ...]]]:
    """The sheets of the workbook, row by row."""
    (folder / "config.yaml").write_text(config)
    output = folder / "merged"
    assert main(["merge_result", "-i", str(folder), "-o", str(output), "-config", str(folder / "config.yaml")]) == 0
    newest = max(output.glob("multi_ranks_compare_merge_*.xlsx"))
    book = openpyxl.load_workbook(newest)
    return {sheet.title: list(sheet.iter_rows(values_only=True)) for sheet in book.worksheets}


@pytest.mark.usefixtures("one_worker")
@pytest.mark.processes
@pytest.mark.parametrize("form", ["--csv", "--xlsx"])
@pytest.mark.parametrize("profile", ["v110", "latest", "own"])
def test_one_sheet_an_index_one_column_a_rank(tmp_path: Path, form: str, profile: str) -> None:
    out = compare(tmp_path, form, "--profile", profile, ranks=11)
    sheets = merge(out, f"api: [Cell.fc, Cell.head]\ncompare_index: [Max diff, {RELATIVE}]\n")
    assert list(sheets) == ["Max diff", RELATIVE]
    titles, *rows = sheets[RELATIVE]
    assert titles == ("NPU Name", *(f"rank{rank}" for rank in range(11)))
    assert [row[0] for row in rows] == [
        f"Cell.{cell}.Dense.forward.0.{place}" for cell in ("fc", "head") for place in ("input.0", "output.0")
    ]
    (fc,) = (row for row in rows if row[0] == FC)
    wrong = {rank for rank, cell in enumerate(fc[1:]) if str(cell) not in ("0", "0.0", "0.0%")}
    assert wrong == {1}


@pytest.mark.usefixtures("one_worker")
@pytest.mark.processes
def test_every_row_without_a_choice(tmp_path: Path) -> None:
    sheets = merge(compare(tmp_path, "--csv"), "compare_index: [Result]")
    assert len(sheets["Result"]) == 1 + 10
    assert {row[0] for row in sheets["Result"][1:]} >= {FC, "MintDistributed.all_reduce.1.forward.input.0"}


@pytest.mark.usefixtures("one_worker")
@pytest.mark.processes
def test_steps_are_columns_too(tmp_path: Path) -> None:
    sheets = merge(compare(tmp_path, "--csv", ranks=2, steps=2), f"compare_index: [{RELATIVE}]")
    assert sheets[RELATIVE][0] == ("NPU Name", "step0 rank0", "step0 rank1", "step1 rank0", "step1 rank1")


@pytest.mark.usefixtures("one_worker")
@pytest.mark.processes
def test_bad_names_are_told_and_skipped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    out = compare(tmp_path, "--csv", "--profile", "latest", ranks=4)
    tables = {column.title: column.files[0] for column in find_tables(out)}
    shutil.copy(tables["rank0"], out / f"compare_result_{STAMP}.csv")
    tables["rank2"].write_bytes(b"\x00PK damaged")
    tables["rank3"].rename(tables["rank3"].with_suffix(".xlsx"))
    sheets = merge(out, f"api: [Cell.fc, Cell.nowhere]\ncompare_index: [Max dif, {RELATIVE}]\nextra: 1\n")
    assert list(sheets) == [RELATIVE] and sheets[RELATIVE][0] == ("NPU Name", "rank0", "rank1")
    for text in (
        f"compare_result_{STAMP}.csv: not the name of a rank's table; left out",
        "cannot be read and is left out: ",
        "compare_index: no table has a column 'Max dif' (did you mean \"Max diff\"?); left out",
        "no table has a row whose name begins with 'Cell.nowhere'",
        "'extra' is no key of it and left out",
    ):
        assert text in caplog.text


def test_the_newest_table_of_a_rank_is_taken(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for stamp, figure in ((STAMP, 1.0), ("20270102030405", 2.0)):
        for rank in (0, 1):
            rows = [([f"Cell.a.A.forward.0.output.{part}", figure + part], "") for part in range(2)]
            write_table(
                tmp_path / f"compare_result_rank{rank}-rank{rank}_{stamp}.xlsx", ["NPU Name", "Max diff"], rows, {}
            )
    sheets = merge(tmp_path, "compare_index: [Max diff]")
    assert sheets["Max diff"][1:] == [("Cell.a.A.forward.0.output.0", 2, 2), ("Cell.a.A.forward.0.output.1", 3, 3)]
    assert "several tables of rank0: the newest is taken" in caplog.text


def test_tokens_and_parts_and_names_that_look_like_formulas(tmp_path: Path) -> None:
    """Tokens of the tables stay text, infinities lose their blank, a guarded name is the name."""
    titles = ["NPU Name", "Cosine"]
    write_table(tmp_path / f"compare_result_rank0_{STAMP}_part_0.csv", titles, [(["=a.0", "N/A"], "")], {})
    write_table(
        tmp_path / f"compare_result_rank0_{STAMP}_part_1.csv", titles, [(["b.0", " inf"], ""), (["c", 0.5], "")], {}
    )
    write_table(
        tmp_path / f"compare_result_rank1_{STAMP}.xlsx", titles, [(["=a.0", "nan\t"], ""), (["d", None], "")], {}
    )
    sheets = merge(tmp_path, "compare_index: [Cosine]")
    assert sheets["Cosine"] == [
        ("NPU Name", "rank0", "rank1"),
        ("=a.0", "N/A", "nan"), ("b.0", "inf", None), ("c", 0.5, None), ("d", None, None),
    ]  # fmt: skip


def test_differences_beyond_any_float_are_text(tmp_path: Path) -> None:
    titles = ["NPU Name", *NPU_TITLES, *BENCH_TITLES]
    for rank in range(2):
        rows = [(["a.0", "1.7e308", 1.0, 1.0, 1.0, "-1.7e308", 0.5, 1.0, 1.0], "")]
        write_table(tmp_path / f"compare_result_rank{rank}_{STAMP}.csv", titles, rows, {})
    sheets = merge(tmp_path, "compare_index: [Max diff, Min diff]")
    assert sheets["Max diff"][1] == ("a.0", "inf", "inf")
    assert sheets["Min diff"][1] == ("a.0", 0.5, 0.5)


def test_of_a_table_that_fails_no_names_are_left(tmp_path: Path) -> None:
    titles = ["NPU Name", "Cosine"]
    write_table(tmp_path / f"compare_result_rank0_{STAMP}.csv", titles, [(["a.0", 1.0], "")], {})
    write_table(tmp_path / f"compare_result_rank1_{STAMP}_part_0.csv", titles, [(["gone.0", 1.0], "")], {})
    (tmp_path / f"compare_result_rank1_{STAMP}_part_1.csv").write_bytes(b"NPU Name,Cosine\n\xff,1\n")
    write_table(tmp_path / f"compare_result_rank2_{STAMP}.csv", titles, [(["b.0", 0.5], "")], {})
    sheets = merge(tmp_path, "compare_index: [Cosine]")
    assert sheets["Cosine"] == [("NPU Name", "rank0", "rank2"), ("a.0", 1, None), ("b.0", None, 0.5)]


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ("compare_index: []", "config.yaml: compare_index: [] is not accepted; expected api: ["),
        ("api: [a]", "config.yaml: compare_index: None is not accepted"),
        ("api: {a: b}\ncompare_index: [a]", "config.yaml: api: {'a': 'b'} is not accepted"),
        ("[", "config.yaml: line 2, column 1: this is not yaml: "),
        ("- a", "config.yaml: holds no keys"),
        (
            "!!python/object/apply:os.system ['true']",
            "config.yaml: holds no keys",
        ),
        ("compare_index: [Nothing]", "no table has one of the columns Nothing; they have "),
        ("api: [Nothing]\ncompare_index: [Max diff]", "none of its tables has a row whose name begins with Nothing"),
    ],
)
def test_a_wrong_configuration_is_named(
    tmp_path: Path, config: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for rank in (0, 1):
        write_table(
            tmp_path / f"compare_result_rank{rank}_{STAMP}.csv", ["NPU Name", "Max diff"], [(["a", 1.0], "")], {}
        )
    (tmp_path / "config.yaml").write_text(config)
    assert (
        main(["merge_result", "-i", str(tmp_path), "-o", str(tmp_path), "-config", str(tmp_path / "config.yaml")]) == 2
    )
    told = capsys.readouterr().err
    assert text in told and told.splitlines()[-1].startswith("msprobe: ") and "Traceback" not in told


def test_aliases_in_aliases_are_told_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nine lists of nine of the list before: 9^9 texts when written out."""
    lines = [f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 9)}]" for n in range(1, 10)]
    (tmp_path / "config.yaml").write_text("\n".join(["x0: &x0 [a]", *lines, "compare_index: *x9"]))
    arguments = ["-i", str(tmp_path), "-o", str(tmp_path), "-config", str(tmp_path / "config.yaml")]
    assert main(["merge_result", *arguments]) == 2
    told = capsys.readouterr().err.splitlines()[-1]
    assert "compare_index: [" in told and len(told) < 1000


def test_too_few_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.yaml").write_text("compare_index: [Max diff]")
    arguments = ["-o", str(tmp_path), "-config", str(tmp_path / "config.yaml")]
    assert main(["merge_result", "-i", str(tmp_path), *arguments]) == 2
    assert "0 tables of ranks, two are needed; accepted are compare_result_rank0_<time>.xlsx" in capsys.readouterr().err
    assert main(["merge_result", "-i", str(tmp_path / "gone"), *arguments]) == 2
    assert "gone: no such folder" in capsys.readouterr().err


numbers = st.integers(0, 10**6)


@given(
    st.sampled_from(["", "graph_", "pynative_"]), st.none() | numbers, numbers, st.booleans(), st.none() | numbers,
    st.sampled_from(["csv", "xlsx"]),
)  # fmt: skip
def test_the_grammar_of_names(half: str, step: int | None, rank: int, old: bool, part: int | None, form: str) -> None:
    place = f"{half}{'' if step is None else f'step{step}_'}rank{rank}{f'-rank{rank}' if old else ''}"
    name = f"compare_result_{place}_{STAMP}{'' if part is None else f'_part_{part}'}.{form}"
    found = _TABLE.fullmatch(name)
    assert found is not None
    assert (found["number"], found["step"], found["half"] or "") == (
        str(rank),
        None if step is None else str(step),
        half,
    )
    assert _TABLE.fullmatch(name + ".tmp") is None and _TABLE.fullmatch(name.replace("rank", "rang")) is None
