"""Which dump stands beside which: ranks and steps of two dump roots."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from msprobe_ms.comparison.many.plan import Plan, plan
from msprobe_ms.dump.reading.locate import Place, find_places
from msprobe_ms.support.errors import CompareError, DumpFormatError
from msprobe_ms.support.log import logger


def lay_out(root: Path, *folders: str) -> Path:
    for folder in folders:
        (root / folder).mkdir(parents=True)
        (root / folder / "dump.json").write_text("{}")
    return root


def planned(folder: Path, target: str, golden: str, **chosen: object) -> Plan:
    """``target`` and ``golden``: folders of dumps, separated by spaces."""
    return plan(lay_out(folder / "target", *target.split()), lay_out(folder / "golden", *golden.split()), **chosen)  # type: ignore[arg-type]


def counterparts(found: Plan) -> list[str]:
    return [f"{each.target.parent.name} {each.golden.parent.name} {each.suffix}".rstrip() for each in found.pairs]


def alone(found: Plan) -> tuple[list[str], list[str]]:
    return [str(place) for place in found.only_target], [str(place) for place in found.only_golden]


def test_two_ranks_of_one_side_each_are_told_where_they_differ(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    logger.addHandler(caplog.handler)
    try:
        with caplog.at_level(logging.INFO, logger.name):
            planned(tmp_path / "same", "step0/rank0", "step0/rank0")
            planned(tmp_path / "proc", "step0/rank0", "step0/proc7")
            assert caplog.text == ""
            planned(tmp_path / "other", "step0/rank0", "step0/rank1")
    finally:
        logger.removeHandler(caplog.handler)
    folder = tmp_path / "other"
    assert f"rank0 of {folder / 'target'} is compared with rank1 of {folder / 'golden'}" in caplog.text


def test_ranks_and_steps_in_numeric_order(tmp_path: Path) -> None:
    folders = " ".join(f"step{step}/rank{rank}" for step in (10, 2) for rank in (0, 10, 9, 100))
    found = planned(tmp_path, folders, folders)
    expected = [f"_step{step}_rank{rank}" for step in (2, 10) for rank in (0, 9, 10, 100)]
    assert [each.suffix for each in found.pairs] == expected
    assert all(each.target.parts[-3:] == each.golden.parts[-3:] for each in found.pairs)
    assert found.pairs[0].place == Place(2, "rank0") and alone(found) == ([], [])


def test_unequal_counts_are_told_and_the_common_ones_compared(tmp_path: Path) -> None:
    target = "step0/rank0 step0/rank1 step1/rank0 step1/rank1"
    found = planned(tmp_path, target, "step0/rank0 step1/rank1 step1/rank2 step2/rank0")
    assert [each.suffix for each in found.pairs] == ["_step0_rank0", "_step1_rank1"]
    assert alone(found) == (["step0 rank1", "step1 rank0"], ["step1 rank2", "step2 rank0"])


def test_one_step_leaves_the_step_out_of_names(tmp_path: Path) -> None:
    found = planned(tmp_path, "step3/rank0 step3/rank1", "step0/rank0 step0/rank1")
    assert counterparts(found) == ["rank0 rank0 _rank0", "rank1 rank1 _rank1"]


def test_names_of_1_1_0(tmp_path: Path) -> None:
    found = planned(tmp_path, "rank0 rank10", "rank0 rank10", profile="v110")
    assert [each.suffix for each in found.pairs] == ["_rank0-rank0", "_rank10-rank10"]


def test_one_dump_a_side_is_a_pair_whatever_its_name(tmp_path: Path) -> None:
    for number, (mine, other) in enumerate([("step3/proc12", "step0/proc9"), ("my_run", "rank"), ("rank3", "rank0")]):
        (pair,) = planned(tmp_path / str(number), mine, other).pairs
        assert pair.suffix == ""


def test_processes_without_a_rank_pair_step_by_step(tmp_path: Path) -> None:
    found = planned(tmp_path, "step0/proc12 step1/proc12", "step0/rank step1/rank")
    assert [each.suffix for each in found.pairs] == ["_step0_proc12", "_step1_proc12"]
    assert alone(found) == ([], [])


def test_a_later_run_of_the_script_is_taken_in_all_its_steps(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    lay_out(tmp_path, "step0/proc1", "step1/proc1", "step2/proc1", "step0/proc2", "step1/proc2")
    for file in tmp_path.rglob("proc1/dump.json"):
        os.utime(file, (1e9, 1e9))
    assert list(find_places(tmp_path)) == [Place(0, "proc2"), Place(1, "proc2")]


def test_halves_of_a_step_are_one_dump(tmp_path: Path) -> None:
    mixed, other = "graph/step0/proc1 pynative/step0/proc1", "graph/step0/proc2 pynative/step0/proc2"
    for number, (ours, theirs) in enumerate([(mixed, other), (mixed, "step0/rank0"), ("step0/rank0", mixed)]):
        found = planned(tmp_path / str(number), ours, theirs)
        assert [each.suffix for each in found.pairs] == [""] and alone(found) == ([], [])
    assert len(planned(tmp_path / "b", "graph/step0/proc1", "pynative/step0/proc2").pairs) == 1


def test_ranks_and_steps_can_be_chosen(tmp_path: Path) -> None:
    folders = " ".join(f"step{step}/rank{rank}" for step in range(3) for rank in range(3))
    found = planned(tmp_path, folders, folders, ranks=[1, 2], steps=[2])
    assert [str(each.place) for each in found.pairs] == ["step2 rank1", "step2 rank2"] and alone(found) == ([], [])
    with pytest.raises(CompareError, match="target: no rank and step that was asked for: it has step0 rank0, step0 "):
        plan(tmp_path / "target", tmp_path / "golden", ranks=[7])


@pytest.mark.parametrize(
    ("chosen", "told"),
    [
        ({"steps": [0, 9]}, ["step 9: asked for, and in neither dump"]),
        ({"steps": [0, 1, 2, 3, 4, 6]}, ["steps 3-4,6: asked for, and in neither dump"]),
        (
            {"ranks": [0, 7], "steps": [1, 5]},
            ["rank 7: asked for, and in neither dump", "step 5: asked for, and in neither dump"],
        ),
        ({"ranks": [0, 1], "steps": [0, 1, 2]}, []),
        ({}, []),
    ],
)
def test_what_was_asked_for_and_is_in_neither_dump_is_told(
    chosen: dict[str, list[int]], told: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Step 2 is in one of them, which the plan holds."""
    logger.addHandler(caplog.handler)
    try:
        with caplog.at_level(logging.WARNING, logger.name):
            planned(tmp_path, "step0/rank0 step1/rank0 step2/rank0", "step0/rank0 step1/rank0 step1/rank1", **chosen)
    finally:
        logger.removeHandler(caplog.handler)
    assert caplog.messages == told


def test_a_dump_of_which_nothing_tells_its_step_may_be_any(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    logger.addHandler(caplog.handler)
    try:
        planned(tmp_path, "rank0 rank1", "rank0 rank1", steps=[3])
    finally:
        logger.removeHandler(caplog.handler)
    assert caplog.messages == []


def test_a_step_folder_beside_a_whole_dump_finds_its_step(tmp_path: Path) -> None:
    root = lay_out(tmp_path / "run", "step0/rank0", "step1/rank0", "step1/rank1")
    found = plan(root, root / "step1")
    assert counterparts(found) == ["rank0 rank0 _rank0", "rank1 rank1 _rank1"]
    assert alone(found) == (["step0 rank0"], [])
    (pair,) = plan(root, root / "step1" / "rank0" / "dump.json").pairs
    assert (pair.target.parent, pair.suffix) == (root / "step1" / "rank0", "")


def test_nothing_in_common_is_an_error_that_names_both(tmp_path: Path) -> None:
    text = "no rank and step is in both: .*target has step0 rank1, step0 rank2, .*golden has step0 rank0, step0 rank3; "
    with pytest.raises(CompareError, match=text):
        planned(tmp_path, "step0/rank1 step0/rank2", "step0/rank0 step0/rank3")
    (tmp_path / "empty" / "a").mkdir(parents=True)
    with pytest.raises(DumpFormatError, match=r"empty: no dump in it: found folders a; accepted are a dump\.json"):
        find_places(tmp_path / "empty")


def test_a_dump_that_was_never_finished_is_found_as_its_folder(tmp_path: Path) -> None:
    lay_out(tmp_path, "rank0", "rank1")
    (tmp_path / "rank1" / "dump.json").rename(tmp_path / "rank1" / "dump.journal")
    assert list(find_places(tmp_path).values()) == [tmp_path / "rank0" / "dump.json", tmp_path / "rank1"]


places = st.sets(
    st.tuples(st.sampled_from(["step0/", "step1/", "step7/"]), st.sampled_from(["rank0", "rank1", "rank10", "proc3"])),
    min_size=1,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(ours=places, theirs=places)
def test_every_place_is_paired_or_told(tmp_path: Path, ours: set, theirs: set) -> None:
    folder = tmp_path / str(abs(hash((frozenset(ours), frozenset(theirs)))))
    if folder.exists():
        return
    sides = [lay_out(folder / name, *map("".join, side)) for name, side in (("a", ours), ("b", theirs))]
    try:
        found = plan(*sides)
    except CompareError:
        assert not ours & theirs
        return
    targets, goldens = [each.target for each in found.pairs], [each.golden for each in found.pairs]
    assert len(set(targets)) == len(targets) and len(set(goldens)) == len(goldens), "nothing is compared twice"
    assert len(targets) + len(found.only_target) == len(ours) and len(goldens) + len(found.only_golden) == len(theirs)
    assert len({each.suffix for each in found.pairs}) == len(found.pairs), "reports have names of their own"
    if len({step for step, _ in ours}) > 1:
        assert {target.parent.parent.name for target in targets} <= {step.rstrip("/") for step, _ in theirs}
