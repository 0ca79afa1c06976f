"""The pairing beside the report: given back with -dm it pairs the same, corrected it pairs otherwise."""

from __future__ import annotations

import json
import logging
import time
from pathlib import Path

import pytest
import repository
from built_dumps import dump, entry, module_calls, paired, rows
from hypothesis import example, given
from hypothesis import strategies as st

from msprobe_ms.cli.main import main
from msprobe_ms.comparison.model import Pair
from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.api import ApiRule
from msprobe_ms.comparison.pairing.rules.data import write_pairing
from msprobe_ms.comparison.pairing.rules.files import Mappings, load_mappings
from msprobe_ms.dump.model import Dump
from msprobe_ms.dump.reading.reader import read_dump

DATA = repository.DATA / "mapping"
ENCODERS = load_mappings(layer=DATA / "encoder_layer_mapping.yaml")


def written(pairs: list[Pair], folder: Path) -> Path:
    (path,) = write_pairing(pairs, folder, "20260101000000")
    return path


def again(target: Dump, golden: Dump, path: Path) -> list[Pair]:
    return pair(target, golden, load_mappings(data=path))


def told(pairs: list[Pair]) -> list[tuple[str | None, str | None, list[tuple[str, str]]]]:
    """Everything a pairing says, but for what paired them."""
    return [
        (
            one.target.name if one.target else None,
            one.golden.name if one.golden else None,
            sorted((ours or "", theirs or "") for ours, theirs in rows([one])),
        )
        for one in pairs
    ]


@pytest.mark.parametrize("fuzzy", [False, True])
@pytest.mark.parametrize(
    ("target", "golden", "mappings"),
    [
        ("encoder_mindspore_L0", "encoder_pytorch_L0", ENCODERS),
        ("encoder_mindspore_mix", "encoder_pytorch_mix", ENCODERS),
        ("encoder_pytorch_mix", "encoder_mindspore_mix", Mappings(api=())),
        ("lenet_mindspore_mix", "lenet_pytorch_mix", Mappings(cell={})),
    ],
)
def test_given_back_it_pairs_every_entry_and_item_the_same(tmp_path, target, golden, mappings, fuzzy):
    ours, theirs = read_dump(DATA / target), read_dump(DATA / golden)
    pairs = pair(ours, theirs, mappings, fuzzy=fuzzy)
    assert told(again(ours, theirs, written(pairs, tmp_path))) == told(pairs)


APIS = ["Mint.add", "Tensor.__add__", "Primitive.d.MatMul", "Primitive.d.BiasAdd", "Functional.linear", "odd: #name's"]


@given(st.lists(st.sampled_from(APIS), max_size=9), st.lists(st.sampled_from(APIS), max_size=9), st.booleans())
def test_any_pairing_comes_back(tmp_path_factory, ours, theirs, everywhere):
    folder = tmp_path_factory.getbasetemp()
    sides = []
    for framework, apis in (("mindspore", ours), ("pytorch", theirs)):
        sides.append(dump(framework, *(entry(f"{api}.{place}.forward") for place, api in enumerate(apis))))
    pairs = pair(*sides, Mappings(api=() if everywhere else None))
    if files := write_pairing(pairs, folder, "x"):
        assert told(again(*sides, files[0])) == told(pairs)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1, max_size=3, unique=True))
@example(["\u0301" * 500])
@example(["\U0001f600", "\x7f\x85", '\\ud83d\\"'])
def test_any_name_comes_back(tmp_path_factory, names):
    folder = tmp_path_factory.getbasetemp()
    ours = [f"Functional.{name}.0.forward" for name in names]
    target = dump("mindspore", *map(entry, ours))
    path = written(
        pair(target, dump("pytorch", entry("T.t.0.forward")), Mappings(data={ours[0]: "T.t.0.forward"})), folder
    )
    assert {name.removesuffix(".output.0").removesuffix(".input.0") for name in load_mappings(data=path).data} == set(
        ours
    )


def test_half_a_character_does_not_cost_the_other_lines(tmp_path):
    target = dump("mindspore", entry("Functional.\ud83d.0.forward"), entry("Functional.abs.0.forward"))
    rule = {"Functional.abs.0.forward": "T.t.0.forward"}
    path = written(pair(target, dump("pytorch", entry("T.t.0.forward")), Mappings(data=rule)), tmp_path)
    assert "Functional.\ufffd.0.forward" in load_mappings(data=path).data


def test_what_a_line_says(tmp_path):
    target = dump(
        "mindspore", *module_calls("Cell", "fc", "Dense"), "Functional.odd.0.forward", "Functional.abs.0.forward"
    )
    golden = dump(
        "pytorch", *module_calls("Module", "fc", "Linear"), "Torch.other thing.0.forward", "Torch.absolute.0.forward"
    )
    text = written(pair(target, golden, Mappings(cell={})), tmp_path).read_text()
    assert text.startswith("# Each line pairs a name of the target (left) ")
    assert "-dm data_mapping_20260101000000.yaml\n" in text
    assert [line for line in text.splitlines() if "forward" in line] == [
        "Cell.fc.Dense.forward.0: Module.fc.Linear.forward.0 # cell",
        "Functional.odd.0.forward: null",
        "Functional.abs.0.forward: Torch.absolute.0.forward # scope",
        '# only in the golden: "Torch.other thing.0.forward"',
    ]


def test_rows_a_rule_made_come_back_item_by_item(tmp_path):
    rule = ApiRule("Functional.f", "Torch.g", {"input": ([0], [1])})
    items = {"input.0": (2,), "input.1": (2,), "output.0": (2,)}
    target, golden = (
        dump(framework, entry(f"{api}.0.forward", items))
        for framework, api in (("mindspore", rule.mindspore), ("pytorch", rule.pytorch))
    )
    path = written(pair(target, golden, Mappings(api=(rule,))), tmp_path)
    assert "Functional.f.0.forward.input.0: Torch.g.0.forward.input.1 # api\n" in path.read_text()
    found = rows(again(target, golden, path))
    assert ("Functional.f.0.forward.input.0", "Torch.g.0.forward.input.1") in found
    assert ("Functional.f.0.forward.output.0", "Torch.g.0.forward.output.0") in found


def test_where_names_say_it_all_nothing_is_written(tmp_path):
    both = [dump("mindspore", *module_calls("Cell", "fc", "Dense"), "Tensor.x.0.forward") for _ in range(2)]
    assert write_pairing(pair(*both, Mappings()), tmp_path, "x") == []
    assert list(tmp_path.iterdir()) == []


def test_compare_writes_it_and_takes_it_back(tmp_path, capsys):
    arguments = ["compare", "-tp", str(DATA / "lenet_mindspore_mix"), "-gp", str(DATA / "lenet_pytorch_mix"), "--csv"]
    assert main([*arguments, "-o", str(tmp_path / "first"), "-am"]) == 0
    (path,) = (tmp_path / "first").glob("data_mapping_*.yaml")
    printed = capsys.readouterr().out
    (summary,) = (tmp_path / "first").glob("compare_summary_*.json")
    assert printed.rstrip().endswith(f"listed in {summary.name})")
    assert "data_mapping.yaml" in json.loads(summary.read_text())["files"]
    assert main([*arguments, "-o", str(tmp_path / "second"), "-dm", str(path)]) == 0
    first, second = (next((tmp_path / name).glob("compare_result_*.csv")).read_text() for name in ("first", "second"))
    assert first == second


def test_the_table_costs_little_of_a_large_comparison(tmp_path):
    """60,000 rows well under 0.3 s on a quiet machine: here the processor's time, and twice that."""
    names = [f"Cell.layers.{number}.Dense.forward.0" for number in range(20_000)]
    items = {"input.0": (2,), "input.1": (2,), "output.0": (2,)}
    target = dump("mindspore", *(entry(name, items) for name in names))
    golden = dump(
        "pytorch", *(entry(name.replace("Cell", "Module").replace("Dense", "Linear"), items) for name in names)
    )
    pairs = pair(target, golden, Mappings())
    begin = time.thread_time()
    write_pairing(pairs, tmp_path, "x")
    assert time.thread_time() - begin < 0.6


# What a data mapping says beyond one name beside one.


def test_null_says_that_nothing_stands_beside_it(tmp_path):
    path = tmp_path / "data.yaml"
    path.write_text("Cell.a.A.forward.0: null\nCell.a.A.backward.0: ~\nCell.b.B.forward.0.input.0: null\n")
    modules = [*module_calls("Cell", "a", "A"), *module_calls("Cell", "b", "B")]
    target, golden = dump("mindspore", *modules), dump("mindspore", *modules)
    pairs = again(target, golden, path)
    assert set(target.entries) - set(paired(pairs)) == {"Cell.a.A.forward.0", "Cell.a.A.backward.0"}
    assert ("Cell.b.B.forward.0.input.0", None) in rows(pairs)
    assert (None, "Cell.b.B.forward.0.input.0") in rows(pairs)


def test_lines_with_one_golden_entry_make_a_group_and_so_does_a_sum(tmp_path):
    path = tmp_path / "data.yaml"
    path.write_text(
        "Functional.a.0.forward: Torch.x.0.forward\nFunctional.b.0.forward: Torch.x.0.forward\n"
        "Functional.c.0.forward: Torch.y.0.forward + Torch.z.0.forward\n"
    )
    target = dump("mindspore", *(f"Functional.{name}.0.{way}" for way in ("forward", "backward") for name in "abc"))
    golden = dump("pytorch", *(f"Torch.{name}.0.{way}" for way in ("forward", "backward") for name in "xyz"))
    assert paired(again(target, golden, path)) == {
        "Functional.b.0.forward": "Torch.x.0.forward",
        "Functional.c.0.forward": "Torch.z.0.forward",
        "Functional.b.0.backward": "Torch.x.0.backward",
        "Functional.c.0.backward": "Torch.z.0.backward",
    }


def test_two_modules_are_no_group(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("msprobe_ms"), "propagate", True)
    path = tmp_path / "data.yaml"
    path.write_text("Cell.a.A.forward.0: Module.x.X.forward.0\nCell.b.B.forward.0: Module.x.X.forward.0\n")
    target = dump("mindspore", "Cell.a.A.forward.0", "Cell.b.B.forward.0")
    found = paired(again(target, dump("pytorch", "Module.x.X.forward.0"), path))
    assert found == {"Cell.a.A.forward.0": "Module.x.X.forward.0"}
    assert (
        "data mapping: the golden name is taken by an earlier line, skipped: Cell.b.B.forward.0: Module.x.X.forward.0"
        in caplog.text
    )
