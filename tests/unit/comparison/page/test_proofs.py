"""A proof is shown in a page that is there already, and nothing else of the page changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from compare_parts import dump, tensor
from report_page import Page

from msprobe_ms.comparison.model import Outcome
from msprobe_ms.comparison.page.proofs import TellingProof, add_proof
from msprobe_ms.comparison.page.report import write_report, write_report_to
from msprobe_ms.comparison.run import Options, compare_dumps

HOSTILE = '</div></script><img src=x onerror="alert(1)">\u202e\x1b[31m\ud800'
CALL = "Functional.op.0.forward"


def proof_of(call: str, sentence: str = "it is right with epsilon 1e-05") -> TellingProof:
    return {"calls": [call], "answer": "wrong", "sentence": sentence, "details": ["agrees: run alone"]}


@pytest.fixture
def outcome() -> Outcome:
    target = dump([tensor("input.0", [1.0, 2.0]), tensor("output.0", [1.0, 2.5])])
    golden = dump([tensor("input.0", [1.0, 2.0]), tensor("output.0", [1.0, 2.0])])
    return Outcome("", target, golden, compare_dumps(target, golden, Options()), [])


@pytest.fixture
def path(outcome: Outcome, tmp_path: Path) -> Path:
    return write_report(outcome, tmp_path, "20260101000000", "_rank0")


def test_before_a_proof_there_is_the_command_to_copy(outcome: Outcome, path: Path, tmp_path: Path) -> None:
    page = Page.of(path)
    command = "msprobe prove compare_summary_rank0_20260101000000.json"
    assert page.index["prove"] == command
    assert f"<code>{command}</code>" in page.static
    write_report_to(tmp_path / "saved.html", outcome)
    saved = Page.of(tmp_path / "saved.html")
    assert saved.index["prove"].startswith("msprobe prove -tp ")
    assert f"<code>{saved.index['prove']} --node {CALL}.output.0</code>" in saved.static
    write_report_to(tmp_path / "saved.html", outcome, stacks=False)
    saved = Page.of(tmp_path / "saved.html")
    assert saved.index["prove"] == "" and "msprobe prove" not in saved.static


def test_a_proof_takes_the_place_of_the_command_and_changes_nothing_else(path: Path) -> None:
    before = Page.of(path)
    assert add_proof(path, proof_of(CALL))
    after = Page.of(path)
    assert "<strong>WRONG</strong> <bdi>Functional.op.0.forward</bdi>: it is right with epsilon 1e-05" in after.static
    assert "<li>agrees: run alone</li>" in after.static and "<code>" not in after.static
    assert after.index == {**before.index, "proofs": [proof_of(CALL)]}
    assert after.text.partition('id="k0"')[2] == before.text.partition('id="k0"')[2]
    assert before.static.partition('<div id="proofs">')[0] == after.static.partition('<div id="proofs">')[0]


def test_the_latest_proof_of_a_call_stands_first_and_alone(path: Path) -> None:
    for call, sentence in ((CALL, "one"), ("Functional.other.0.forward", "two"), (CALL, "three")):
        assert add_proof(path, proof_of(call, sentence))
    page = Page.of(path)
    assert [each["sentence"] for each in page.index["proofs"]] == ["three", "two"]
    assert page.static.count("how that was found") == 2


def test_text_of_a_proof_is_text(path: Path) -> None:
    hostile: TellingProof = {"calls": [HOSTILE], "answer": HOSTILE, "sentence": HOSTILE, "details": [HOSTILE]}
    assert add_proof(path, hostile) and add_proof(path, proof_of(CALL))
    page = Page.of(path)
    assert page.text.count("<script") == page.text.count("</script>")
    assert "<img" not in page.text and "\x1b" not in page.text and "\u202e" not in page.text
    assert page.index["proofs"][1] == hostile


@pytest.mark.parametrize(
    "content",
    [
        "",
        "<p>no page of ours</p>",
        '<div id="proofs"></div>',
        '<div id="proofs"></div><script type="application/json" id="index">[]</script>\n',
        '<div id="proofs"></div><script type="application/json" id="index">{"kind": "dump"}</script>\n',
        '<div id="proofs"></div><script type="application/json" id="index">{"kind": "comparison", "a": NaN}</script>\n',
        '<div id="proofs"></div><script type="application/json" id="index">' + "[" * 100_000 + "</script>\n",
        '<script type="application/json" id="index">{"kind": "comparison"}</script>\n<div id="proofs"></div>',
    ],
    ids=range(8),
)
def test_another_file_is_left_as_it_is(tmp_path: Path, content: str) -> None:
    page = tmp_path / "page.html"
    page.write_text(content)
    assert not add_proof(page, proof_of(CALL))
    assert page.read_text() == content


@pytest.mark.parametrize("proofs", [3, [3], [{}], [{**proof_of("a"), "calls": 3}], [{**proof_of("a"), "details": [3]}]])
def test_what_a_page_holds_that_is_no_proof_is_dropped(path: Path, proofs: object) -> None:
    page = Page.of(path)
    path.write_text(page.text.replace('"proofs":[]', f'"proofs":{json.dumps(proofs)}'))
    assert add_proof(path, proof_of(CALL))
    assert Page.of(path).index["proofs"] == [proof_of(CALL)]
