"""API mappings: their files, what rules pair, and which items they bring together."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from built_dumps import dump, entry, module_calls, paired, rows
from hypothesis import given
from hypothesis import strategies as st

from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.api import ApiRule
from msprobe_ms.comparison.pairing.rules.files import Mappings, load_mappings
from msprobe_ms.support.errors import MappingError

NONE = Mappings()


@pytest.fixture
def write(tmp_path: Path):
    def _write(text: str) -> Path:
        path = tmp_path / "api.yaml"
        path.write_text(text)
        return path

    return _write


@pytest.fixture
def log(caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("msprobe_ms"), "propagate", True)
    return caplog


def refusal(path: Path) -> str:
    with pytest.raises(MappingError) as caught:
        load_mappings(api=path)
    return str(caught.value)


# Files.


def test_a_rule_in_every_spelling(write):
    rule = ApiRule("Functional.a", "Torch.b", {"input": ([0, 1], [1, 0]), "output": ([0], [0])})
    for text in (
        "- ms_api: Functional.a\n  pt_api: Torch.b\n  ms_args: [0, 1]\n  pt_args: [1, 0]\n"
        "  ms_output: [0]\n  pt_output: [0]\n",
        "ms_api: Functional.a\npt_api: Torch.b\nms_args: [0, 1]\npt_args: [1, 0]\nms_outputs: [0]\npt_outputs: [0]\n",
        "[{ms_api: Functional.a, pt_api: Torch.b, ms_args: ['0', 1], pt_args: [1, 0], ms_outputs: 0, pt_output: 0}]",
    ):
        assert load_mappings(api=write(text)).api == (rule,)


def test_parameters_go_by_place_or_name(write):
    path = write(
        "- {ms_api: A.b, pt_api: C.d, ms_parameters: [weight], pt_parameters: [0], "
        "ms_parameters_grad: [], pt_parameters_grad: []}"
    )
    assert load_mappings(api=path).api == (
        ApiRule("A.b", "C.d", {"parameters": (["weight"], [0]), "parameters_grad": ([], [])}),
    )


def test_the_bare_flag_is_no_rule_and_not_given_is_none():
    assert load_mappings(api=True).api == ()
    assert load_mappings().api is None


def test_unequal_lengths_leave_the_rule_out_with_a_warning(write, log):
    path = write(
        "- {ms_api: A.b, pt_api: C.d, ms_args: [0, 1], pt_args: [0]}\n"
        "- {ms_api: A.c, pt_api: C.e, ms_output: [0]}\n"
        "- {ms_api: A.d, pt_api: C.f}\n"
    )
    assert load_mappings(api=path).api == (ApiRule("A.d", "C.f"),)
    assert (
        f"API mapping {path}: rule 1 (line 1): A.b names unequally many items of input on its two sides; "
        "the rule is ignored" in log.text
    )
    assert "rule 2 (line 2): A.c names unequally many items of output" in log.text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- pt_api: Torch.abs\n", "rule 1 (line 1): ms_api is missing"),
        ("- ms_api: Functional.abs\n", "rule 1 (line 1): pt_api is missing"),
        ("- {ms_api: abs, pt_api: Torch.abs}\n", "ms_api: 'abs' is no name such as Functional.relu"),
        ("- {ms_api: Functional., pt_api: Torch.abs}\n", "ms_api: 'Functional.' is no name such as Functional.relu"),
        ("- {ms_api: A.b, pt_api: C.d, args: [0]}\n", "rule 1 (line 1): args is no key of a rule"),
        ("- {ms_api: A.b, pt_api: C.d, ms_args: [-1], pt_args: [0]}\n", "ms_args: -1 is no place; they are counted"),
        ("- {ms_api: A.b, pt_api: C.d}\n- {ms_api: A.b, pt_api: C.e}\n", "rule 2 (line 2): ms_api: A.b appears twice"),
        (
            "- {ms_api: A.b, pt_api: C.d, ms_output: [0], ms_outputs: [0]}",
            "ms_outputs is there twice, in two",
        ),
        ("- {ms_api: A.b, pt_api: C.d, ms_args: {a: b}}", "ms_args (line 1): a mapping where places of items"),
        ("- {ms_api: A.b, pt_api: C.d, ms_args: [[0]]}", "ms_args (line 1): a list where places of items are expected"),
        ("- {ms_api: A.b, pt_api: C.d, ms_args: [null]}", "ms_args (line 1): nothing where places of items are"),
        ("- {ms_api: [A.b], pt_api: C.d}", "ms_api (line 1): a list where one golden name is expected"),
        ("- Functional.abs\n", "line 1: the text 'Functional.abs' where a rule is expected"),
        ("Functional.abs\n", "line 1: the text 'Functional.abs' where a rule is expected"),
        ("- {ms_api: A.b, ms_api: A.c, pt_api: C.d}", "ms_api (line 1): this key appears twice; which one is meant?"),
        ("- {ms_api: A.b, pt_api: C.d}\n---\n- x\n", "line 2: a second document; one is read"),
    ],
)
def test_refusals_say_where_and_what_is_accepted(write, text, said):
    path = write(text)
    message = refusal(path)
    assert message.startswith(f"api mapping {path}: ")
    assert said in message
    assert "Accepted: a yaml list of rules, for example\n    - ms_api: Functional.flash_attention_score\n" in message


names = st.from_regex(r"[A-Z][a-z]{1,6}\.[a-z_]{1,6}", fullmatch=True)
places = st.lists(st.integers(0, 9), max_size=3)
some_rules = st.lists(
    st.fixed_dictionaries(
        {"ms_api": names, "pt_api": names},
        optional=dict.fromkeys(("ms_args", "pt_args", "ms_output", "pt_outputs", "ms_parameters"), places),
    ),
    max_size=4,
    unique_by=lambda rule: rule["ms_api"],
)


@given(some_rules)
def test_what_yaml_writes_is_read_as_it_was_meant(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "written.yaml"
    path.write_text(yaml.safe_dump(content))
    given_rules = load_mappings(api=path).api
    kept = {rule.mindspore: rule for rule in given_rules}
    for rule in content:
        lists = [
            (rule.get(f"ms_{ours}", []), rule.get(f"pt_{theirs}", []))
            for ours, theirs in (("args", "args"), ("output", "outputs"), ("parameters", "parameters"))
        ]
        assert (rule["ms_api"] in kept) == all(len(ours) == len(theirs) for ours, theirs in lists)
        if rule["ms_api"] in kept:
            assert kept[rule["ms_api"]].pytorch == rule["pt_api"]
            assert kept[rule["ms_api"]].items.get("input", ([], [])) == lists[0]


@given(st.text(max_size=120))
def test_any_text_is_read_or_refused_in_one_error(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with suppress(MappingError):
        load_mappings(api=path)


# What rules pair.


def calls(api: str, count: int, parent: str | None = None):
    ways = ["forward"] * count + ["backward"] * count
    numbers = [*range(count), *reversed(range(count))]
    return [entry(f"{api}.{number}.{way}", parent=parent) for number, way in zip(numbers, ways, strict=True)]


FUSED = ApiRule("Functional.own_attention", "NPU.npu_own_fusion")


def test_a_rule_pairs_apis_no_table_knows_and_backward_goes_with_its_forward():
    target = dump("mindspore", *calls(FUSED.mindspore, 2))
    golden = dump("pytorch", *calls(FUSED.pytorch, 2))
    assert paired(pair(target, golden, NONE)) == {}
    pairs = pair(target, golden, Mappings(api=(FUSED,)))
    assert paired(pairs) == {
        f"{FUSED.mindspore}.{number}.{way}": f"{FUSED.pytorch}.{number}.{way}"
        for number in range(2)
        for way in ("forward", "backward")
    }
    assert {one.how for one in pairs} == {"api"}


def test_a_rule_comes_before_the_built_in_table():
    target = dump("mindspore", "Functional.abs.0.forward")
    golden = dump("pytorch", "Torch.abs.0.forward", "Torch.relu.0.forward")
    assert paired(pair(target, golden, NONE)) == {"Functional.abs.0.forward": "Torch.abs.0.forward"}
    found = paired(pair(target, golden, Mappings(api=(ApiRule("Functional.abs", "Torch.relu"),))))
    assert found == {"Functional.abs.0.forward": "Torch.relu.0.forward"}


def test_a_rule_says_which_is_which_between_dumps_of_one_framework_too():
    target = dump("mindspore", *calls("Functional.old", 2), "Functional.add.0.forward")
    golden = dump("mindspore", *calls("Functional.new", 2), "Functional.add.0.forward", "Functional.old.0.forward")
    found = paired(pair(target, golden, Mappings(api=(ApiRule("Functional.old", "Functional.new"),))))
    assert found["Functional.old.0.forward"] == "Functional.new.0.forward"
    assert found["Functional.add.0.forward"] == "Functional.add.0.forward"
    assert len(found) == 5


def test_ms_api_is_mindspores_whichever_side_it_is_on():
    target, golden = dump("pytorch", *calls(FUSED.pytorch, 1)), dump("mindspore", *calls(FUSED.mindspore, 1))
    assert len(paired(pair(target, golden, Mappings(api=(FUSED,))))) == 2


def test_a_primitive_goes_by_attribute_or_by_its_whole_name():
    target = dump("mindspore", "Primitive.att.Odd.0.forward", "Primitive.more.Odd.0.forward")
    golden = dump("pytorch", "Torch.a.0.forward", "Torch.b.0.forward")
    rules = (ApiRule("Primitive.att", "Torch.a"), ApiRule("Primitive.more.Odd", "Torch.b"))
    assert paired(pair(target, golden, Mappings(api=rules))) == {
        "Primitive.att.Odd.0.forward": "Torch.a.0.forward",
        "Primitive.more.Odd.0.forward": "Torch.b.0.forward",
    }


def test_with_cell_and_layer_mappings_each_speaks_of_its_own():
    """Modules go by layer and cell mapping, functions by rules; the data mapping wins over all."""
    inside, outside = "Cell.a.Net.forward.0", "Module.x.Net.forward.0"
    target = dump(
        "mindspore", *(entry(f"{FUSED.mindspore}.{k}.forward", parent=inside) for k in range(2)),
        *module_calls("Cell", "a", "Net"), *module_calls("Cell", "b", "Head"), "Functional.odd.0.forward",
    )  # fmt: skip
    golden = dump(
        "pytorch", *(entry(f"{FUSED.pytorch}.{k}.forward", parent=outside) for k in range(2)),
        *module_calls("Module", "x", "Net"), *module_calls("Module", "y", "Head"), "Torch.even.0.forward",
    )  # fmt: skip
    mappings = Mappings(
        cell={"b.Head": "y.Head"}, layer={"TopLayer": {"a": "x"}},
        api=(FUSED, ApiRule("Functional.odd", "Torch.nothing")),
        data={"Functional.odd.0.forward": "Torch.even.0.forward"},
    )  # fmt: skip
    pairs = pair(target, golden, mappings)
    assert len(paired(pairs)) == len(target.entries)
    hows = {one.target.name: one.how for one in pairs}
    assert hows[inside] == "layer" and hows["Cell.b.Head.forward.0"] == "cell"
    assert hows[f"{FUSED.mindspore}.1.forward"] == "api" and hows["Functional.odd.0.forward"] == "data"


def test_the_bare_flag_pairs_across_modules_what_no_module_pairs():
    target = dump("mindspore", entry("Functional.abs.0.forward", parent="Cell.a.A.forward.0"), "Cell.a.A.forward.0")
    golden = dump("pytorch", entry("Torch.abs.0.forward", parent="Module.z.Z.forward.0"), "Module.z.Z.forward.0")
    assert paired(pair(target, golden, NONE)) == {}
    assert paired(pair(target, golden, Mappings(api=()))) == {"Functional.abs.0.forward": "Torch.abs.0.forward"}


def test_between_dumps_of_one_framework_the_bare_flag_knows_the_table_too():
    target, golden = dump("mindspore", "Mint.abs.0.forward"), dump("mindspore", "Functional.abs.0.forward")
    assert paired(pair(target, golden, NONE)) == {}
    assert paired(pair(target, golden, Mappings(api=()))) == {"Mint.abs.0.forward": "Functional.abs.0.forward"}


def test_rules_that_meet_no_call_are_named(log):
    target, golden = dump("mindspore", "Functional.abs.0.forward"), dump("pytorch", "Torch.abs.0.forward")
    pair(target, golden, Mappings(api=(ApiRule("Functional.abz", "Torch.abs"),)))
    assert "API mapping rules that meet no call of the target: Functional.abz" in log.text
    assert "of the golden" not in log.text


# Items.

FOUR = {"input.0": (2,), "input.1": (3,), "input.2": (4,), "output.0": (2,), "output.1": (5,)}


def test_listed_items_stand_together_and_others_of_their_state_are_left_out():
    rule = ApiRule("Functional.f", "Torch.g", {"input": ([0, 2], [1, 0])})
    target = dump("mindspore", entry("Functional.f.0.forward", FOUR))
    golden = dump("pytorch", entry("Torch.g.0.forward", FOUR))
    assert rows(pair(target, golden, Mappings(api=(rule,)))) == [
        ("Functional.f.0.forward.input.0", "Torch.g.0.forward.input.1"),
        ("Functional.f.0.forward.input.2", "Torch.g.0.forward.input.0"),
        ("Functional.f.0.forward.output.0", "Torch.g.0.forward.output.0"),
        ("Functional.f.0.forward.output.1", "Torch.g.0.forward.output.1"),
    ]


def test_a_listed_place_the_golden_lacks_stands_alone_and_one_the_target_lacks_is_none():
    rule = ApiRule("Functional.f", "Torch.g", {"input": ([0, 9], [7, 0]), "output": ([1], [0])})
    target = dump("mindspore", entry("Functional.f.0.forward", FOUR))
    golden = dump("pytorch", entry("Torch.g.0.forward", FOUR))
    assert rows(pair(target, golden, Mappings(api=(rule,)))) == [
        ("Functional.f.0.forward.input.0", None),
        ("Functional.f.0.forward.output.1", "Torch.g.0.forward.output.0"),
    ]


def test_in_backward_places_of_inputs_speak_of_the_gradients_that_go_out():
    rule = ApiRule("Functional.f", "Torch.g", {"input": ([0, 1], [1, 0])})
    back = {"input.0": (2,), "output.0": (2,), "output.1": (2,)}
    target = dump("mindspore", "Functional.f.0.forward", entry("Functional.f.0.backward", back))
    golden = dump("pytorch", "Torch.g.0.forward", entry("Torch.g.0.backward", back))
    found = rows(pair(target, golden, Mappings(api=(rule,))))
    assert [row for row in found if row[0] and "backward" in row[0]] == [
        ("Functional.f.0.backward.input.0", "Torch.g.0.backward.input.0"),
        ("Functional.f.0.backward.output.0", "Torch.g.0.backward.output.1"),
        ("Functional.f.0.backward.output.1", "Torch.g.0.backward.output.0"),
    ]
