"""Two inferences: the first token that differs, told as a tie where rounding turned it over, else as an error."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rank_dumps import call, write_dump

from msprobe_ms.cli import main
from msprobe_ms.support.errors import UsageError
from msprobe_ms.tokens.compare import Judgement, TokenComparison, compare_tokens
from msprobe_ms.tokens.measure import measure
from msprobe_ms.tokens.report import token_lines

VOCABULARY = 50


def model(tokens: int = 8, sequences: int = 1) -> list[np.ndarray]:
    """Logits whose likeliest token is far ahead."""
    generator = np.random.default_rng(3)
    found = []
    for token in range(tokens):
        logits = generator.standard_normal((sequences, 1, VOCABULARY)).astype(np.float32)
        logits[:, :, token] = 8.0
        found.append(logits)
    return found


def write(folder: Path, logits: list[np.ndarray], task: str = "gsm8k_7") -> Path:
    folder.mkdir(parents=True)
    for token, array in enumerate(logits):
        np.save(folder / f"logits_{task}_{token}.npy", array)
    return folder


def judged(comparison: TokenComparison) -> list[Judgement]:
    return [row.judgement for row in comparison.rows]


def noisy(logits: list[np.ndarray], size: float = 1e-5) -> list[np.ndarray]:
    generator = np.random.default_rng(4)
    return [each + size * generator.standard_normal(each.shape).astype(np.float32) for each in logits]


def test_inferences_that_agree_but_for_rounding(tmp_path: Path) -> None:
    found = compare_tokens(write(tmp_path / "a", noisy(model())), write(tmp_path / "b", model()))
    assert [*token_lines(found)] == ["CONSISTENT: all 8 tokens are equal, and their logits agree"]


def test_a_tie_that_is_turned_over_is_no_error(tmp_path: Path) -> None:
    golden, target = model(), noisy(model())
    golden[5][0, 0, 20], golden[5][0, 0, 21] = 9.0, 9.0 - 1e-6
    target[5][0, 0, 20], target[5][0, 0, 21] = 9.0 - 1e-6, 9.0
    target[6:] = [each[..., ::-1] for each in target[6:]]  # another text from there on
    found = compare_tokens(write(tmp_path / "a", target), write(tmp_path / "b", golden))
    assert judged(found) == [Judgement.PASS] * 5 + [Judgement.TIE] + [Judgement.AFTER] * 2
    first, *others = token_lines(found)
    assert first == (
        "CONSISTENT: up to token 5 of gsm8k_7, where a tie is decided the other way: the target gives 21, the golden "
        "20, which is 1 times as likely there; rounding may explain this"
    )
    assert "  the 2 tokens after the first difference are not judged, as the texts differ from there on" in others


def test_a_wrong_last_layer_is_an_error_at_its_first_token(tmp_path: Path) -> None:
    wrong = np.random.default_rng(5).permutation(VOCABULARY)
    target = [each if token < 3 else each[..., wrong] for token, each in enumerate(model())]
    found = compare_tokens(write(tmp_path / "a", target), write(tmp_path / "b", model()))
    assert found.first is not None and found.first.place.token == 3
    assert next(iter(token_lines(found))).startswith("DIVERGENT: token 3 of gsm8k_7: ")
    assert judged(found)[4:] == [Judgement.AFTER] * 4


def test_logits_that_drift_are_found_though_every_token_is_equal(tmp_path: Path) -> None:
    target = noisy(model(), 1e-5)[:4] + noisy(model(), 0.2)[4:]
    found = compare_tokens(write(tmp_path / "a", target), write(tmp_path / "b", model()))
    first, growth, *_ = token_lines(found)
    assert first.startswith("DIVERGENT: token 4 of gsm8k_7: the same token 4, but the logits are apart (KL ")
    assert growth.startswith("  KL is ") and " at token 0, " in growth and growth.endswith("at token 4")


def test_sequences_of_a_batch_are_judged_alone(tmp_path: Path) -> None:
    target = model(4, sequences=3)
    target[2][1, 0, 30] = 20.0
    found = compare_tokens(write(tmp_path / "a", target), write(tmp_path / "b", model(4, sequences=3)))
    assert next(iter(token_lines(found))).startswith(
        "DIVERGENT: token 2 of gsm8k_7, sequence 1: the target gives 30, the golden 2, "
    )
    after = [(row.place.token, row.sequence) for row in found.rows if row.judgement is Judgement.AFTER]
    assert after == [(3, 1)]


def test_nan_missing_tokens_and_other_shapes_have_a_reason(tmp_path: Path) -> None:
    target = model()
    target[1] = np.full_like(target[1], np.nan)
    target[6] = target[6][..., :-1]
    folder = write(tmp_path / "a", target)
    (folder / "logits_gsm8k_7_7.npy").unlink()
    (folder / "logits_gsm8k_7_5.npy").write_bytes(b"none")
    found = compare_tokens(folder, write(tmp_path / "b", model()))
    assert (
        next(iter(token_lines(found))) == "DIVERGENT: token 1 of gsm8k_7: NaN or infinity in the logits of the target"
    )
    notes = {row.place.token: row.note for row in found.rows if row.figures is None}
    assert notes[6] == "shapes [1, 49] and [1, 50] differ" and notes[7] == "only in the golden"
    assert str(folder / "logits_gsm8k_7_5.npy") in notes[5]


def entries(logits: list[np.ndarray], ids: list[int], start: int = 0) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for number, (array, token) in enumerate(zip(logits, ids, strict=True), start):
        given = call(np.array([token], np.int64), np.ones(4, np.float32))
        given["input_args"][0]["dtype"] = "Int64"
        data[f"Cell.embedding.Embedding.forward.{number}"] = given
        data[f"Cell.lm_head.Dense.forward.{number}"] = call(np.ones(4, np.float32), array)
    return data


def dumped(folder: Path, logits: list[np.ndarray], ids: list[int], *, steps: bool) -> Path:
    parts = [[each] for each in zip(logits, ids, strict=True)] if steps else [[*zip(logits, ids, strict=True)]]
    for step, part in enumerate(parts):
        place = folder / f"step{step}" / "rank0"
        data = entries([array for array, _ in part], [token for _, token in part])
        write_dump(place, data, task="tensor")
        (place / "dump_tensor_data").mkdir()
        for number, (array, _) in enumerate(part):
            np.save(place / "dump_tensor_data" / f"Cell.lm_head.Dense.forward.{number}.output.0.npy", array)
    return folder


@pytest.mark.parametrize("steps", [True, False])
def test_our_dumps_are_read_by_step_or_by_call_and_forced_tokens_are_all_judged(tmp_path: Path, steps: bool) -> None:
    target = model()
    target[3][0, 0, 40] = target[5][0, 0, 41] = 30.0
    forced = compare_tokens(
        dumped(tmp_path / "a", target, [1] * 8, steps=steps), dumped(tmp_path / "b", model(), [1] * 8, steps=steps)
    )
    assert forced.forced
    assert [row.place.token for row in forced.rows if row.judgement is Judgement.ERROR] == [3, 5]
    free = compare_tokens(dumped(tmp_path / "c", target, [1] * 4 + [2] * 4, steps=steps), tmp_path / "b", "lm_head")
    assert not free.forced
    assert judged(free)[3:] == [Judgement.ERROR] + [Judgement.AFTER] * 4


def test_a_tree_of_msit_is_read(tmp_path: Path) -> None:
    for side, logits in (("a", noisy(model(4))), ("b", model(4))):
        for token, array in enumerate(logits):
            for module in ("root.lm_head", "root.model.norm"):
                folder = tmp_path / side / "msit_dump_1" / "torch_tensors" / "cpu0_12" / str(token) / module
                folder.mkdir(parents=True)
                np.save(folder / "output.npy", array)
    assert compare_tokens(tmp_path / "a", tmp_path / "b").first is None
    for module in (tmp_path / "a").rglob("root.lm_head"):
        module.rename(module.with_name("root.norm"))
    with pytest.raises(UsageError, match=r"say which gives the logits: --logits root\.norm"):
        compare_tokens(tmp_path / "a", tmp_path / "b")


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda folder: None, "no such file or folder"),
        (lambda folder: folder.mkdir(), "dump"),
        (
            lambda folder: write_dump(folder, {"Cell.a.Dense.forward.0": call(np.ones(2), np.ones(2))}),
            "holds no logits",
        ),
    ],
)
def test_what_holds_no_logits_is_said(tmp_path: Path, prepare: Callable[[Path], object], message: str) -> None:
    prepare(tmp_path / "a")
    with pytest.raises(Exception, match=message):
        compare_tokens(tmp_path / "a", write(tmp_path / "b", model()))


def test_the_command_writes_a_table_and_its_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = model()
    target[2][0, 0, 30] = 20.0
    sides = ["-tp", str(write(tmp_path / "a", target)), "-gp", str(write(tmp_path / "b", model()))]
    asked = ["compare", *sides, "-cl", "token", "-o", str(tmp_path / "out"), "--csv", "--exit-code"]
    assert main(asked) == 1
    assert capsys.readouterr().out.startswith("DIVERGENT: token 2 of gsm8k_7: the target gives 30, the golden 2, ")
    (table,) = (tmp_path / "out").glob("compare_tokens_*.csv")
    with table.open(newline="", encoding="utf-8-sig") as opened:
        rows = list(csv.DictReader(opened))
    assert [row["judgement"] for row in rows] == ["pass"] * 2 + ["error"] + ["after divergence"] * 5
    assert rows[2]["golden_token"] == "2" and rows[2]["target_token"] == "30"


def test_figures_are_those_of_their_formulae() -> None:
    golden, target = np.array([1.0, 3.0, 2.0]), np.array([1.5, 2.0, 4.0])
    found = measure(target, golden, 2.0**-23)
    p, q = (np.exp(each) / np.exp(each).sum() for each in (golden, target))
    assert found.kl == pytest.approx((p * np.log(p / q)).sum())
    assert found.cosine == pytest.approx(golden @ target / np.linalg.norm(golden) / np.linalg.norm(target))
    assert found.l1_norm == pytest.approx(7.5 / 6 - 1)
    assert found.margin == pytest.approx(p[1] - p[2]) and found.gap == pytest.approx(np.log(p[1] / p[2]))
    assert (found.golden_token, found.target_token, found.rank, found.overlap) == (1, 2, 2, 3)
    assert found.ulp == 4 * 2.0**-23 and found.ulp_difference == 1.0
    negative = measure(-golden, -golden, 2.0**-23)
    assert negative.passed and np.isfinite(negative.ulp)
