"""Agreement means something only where enough was compared."""

from __future__ import annotations

import zlib
from dataclasses import replace

from compare_parts import dump, tensor

from msprobe_ms.comparison.pairing.coverage import expected_alone, unmatched_modules
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.comparison.reporting.files import summary
from msprobe_ms.comparison.reporting.terminal import verdict_lines
from msprobe_ms.comparison.run import Options, Outcome, compare_dumps
from msprobe_ms.dump.model import Dump


def calls(*names: str, framework: str = "mindspore") -> Dump:
    """Calls that each give out a tensor of their own, the same for the module or function of one name."""
    values = [[1.0, 2.0 + zlib.crc32(name.split(".")[1].encode()) % 997] for name in names]
    return dump([tensor("output.0", value, name) for name, value in zip(names, values, strict=True)], framework)


def functions(prefix: str, count: int) -> list[str]:
    return [f"{prefix}.{number}.forward" for number in range(count)]


def told(target: Dump, golden: Dump) -> tuple[str, list[str]]:
    """The verdict and what the terminal says of it."""
    comparison = compare_dumps(target, golden, Options())
    return comparison.verdict, list(verdict_lines(Outcome("", target, golden, comparison, [])))


def test_more_values_without_a_counterpart_than_compared_are_incomplete() -> None:
    common = functions("Functional.relu", 2)
    verdict, lines = told(
        calls(*common, *functions("Mint.exp", 3)), calls(*common, *functions("Torch.exp", 1), framework="pytorch")
    )
    assert verdict == "incomplete"
    assert lines[0].endswith("but more values have no counterpart than were compared")
    assert "dump both at level mix (or L0), and map renamed modules with -lm or -cm" in lines[1]


def with_loss(recorded: Dump, value: float) -> Dump:
    """The same dump with a loss."""
    item = tensor("", [value], "loss.0.debug")._replace(state="debug", path=())
    (loss,) = dump([item]).entries.values()
    return replace(recorded, entries={**recorded.entries, loss.name: loss})


def test_a_loss_on_one_side_is_nothing_that_the_other_lacks() -> None:
    common = calls(*functions("Functional.relu", 2))
    for target, golden in ((with_loss(common, 2.0), common), (common, with_loss(common, 2.0))):
        assert told(target, golden) == told(common, common)


def test_a_loss_that_agrees_pairs_no_dumps_of_different_calls() -> None:
    target, golden = (with_loss(calls(*functions(name, 2)), 2.0) for name in ("Functional.relu", "Functional.exp"))
    assert told(target, golden)[1][0] == "DIVERGENT: nothing in the two dumps could be paired"


OURS, THEIRS = (calls(*(f"{each}.forward.0" for each in names)) for names in (
    ("Cell.a.Dense", "Cell.b.Dense"), ("Module.c.Linear", "Module.d.Linear"),
))  # fmt: skip
WITH_LM = "to pair these modules, compare again with -lm (without a file): it finds which is which"


def test_modules_that_no_name_pairs_are_no_difference() -> None:
    verdict, lines = told(OURS, THEIRS)
    assert (verdict, lines[0]) == ("incomplete", "INCOMPLETE: nothing was compared: no modules could be paired")
    assert WITH_LM in lines
    verdict, lines = told(with_loss(OURS, 2.0), with_loss(THEIRS, 2.0))
    assert verdict == "incomplete"
    assert lines[0].startswith("INCOMPLETE: the loss agrees, but nothing else was compared")
    assert WITH_LM in lines


def test_a_loss_that_differs_beside_modules_that_no_name_pairs_is_a_difference() -> None:
    verdict, lines = told(with_loss(OURS, 2.0), with_loss(THEIRS, 2.5))
    assert verdict == "divergent"
    assert lines[0].startswith("DIVERGENT: the losses differ, but no calls could be paired")
    assert lines[1] == "  loss.0.debug" and WITH_LM in lines


def test_nothing_in_common_stays_divergent_where_one_side_has_no_modules_left() -> None:
    assert told(OURS, calls(*functions("Functional.exp", 2)))[0] == "divergent"
    settled = Options(mappings=Mappings(layer={"TopLayer": {"a": "unmatched", "b": "unmatched"}}))
    assert compare_dumps(OURS, THEIRS, settled).verdict == "divergent"


def test_what_pairs_modules_depends_on_what_was_given() -> None:
    for options, advice in (
        (Options(mappings=Mappings(files=("mine.yaml",))), "to pair these modules, correct mine.yaml"),
        (Options(align=True), "-lm found no counterpart for these modules"),
    ):
        comparison = compare_dumps(OURS, calls("Module.c.ReLU.forward.0"), options)
        lines = list(verdict_lines(Outcome("", OURS, OURS, comparison, [])))
        assert any(line.startswith(advice) for line in lines), lines


def test_within_one_framework_it_names_what_helps_there() -> None:
    common = functions("Functional.relu", 2)
    verdict, lines = told(calls(*common, *functions("Mint.exp", 3)), calls(*common, *functions("Functional.exp", 1)))
    assert verdict == "incomplete"
    assert "try -fm" in lines[1] and "-dm" in lines[1]


def test_the_model_itself_is_rightly_alone_where_the_other_side_has_none() -> None:
    calls_of = ("Cell.a.Dense.forward.0", "Cell.b.Dense.forward.0", "Cell.a.Dense.parameters_grad.0")
    alone = "Cell.Net.forward.0", "Cell.Net.parameters_grad.0"
    for target, golden in ((calls(*calls_of, *alone), calls(*calls_of)), (calls(*calls_of), calls(*calls_of, *alone))):
        comparison = compare_dumps(target, golden, Options())
        assert (comparison.verdict, unmatched_modules(comparison.pairs)) == ("consistent", ([], []))
        assert comparison.shares.modules == (2, 2)


def test_the_model_itself_is_missed_where_its_call_on_the_other_side_never_ended() -> None:
    inside, net = ("Cell.a.Dense.forward.0", "Cell.b.Dense.forward.0"), "Cell.Net.forward.0"
    torn, whole = calls(*inside), calls(*inside, net)
    for side in (torn, whole):
        for name in inside:
            side.entries[name].parent = net
    comparison = compare_dumps(torn, whole, Options())
    assert unmatched_modules(comparison.pairs) == ([], [net])
    assert comparison.verdict == "incomplete"


def test_as_many_compared_as_not_are_consistent() -> None:
    common = functions("Functional.relu", 3)
    verdict, lines = told(calls(*common, *functions("Mint.exp", 3)), calls(*common, *functions("Functional.exp", 1)))
    assert (verdict, lines[0]) == (
        "consistent",
        "CONSISTENT: all values agree within the rounding error of their dtypes",
    )


def test_a_dump_compared_wholly_is_complete_beside_a_larger_one() -> None:
    modules = ["Cell.a.Dense.forward.0", "Cell.b.Dense.forward.0"]
    assert told(calls(*modules, *functions("Mint.exp", 9)), calls(*modules))[0] == "consistent"
    assert (
        told(calls(*modules), calls(*modules, "Cell.c.Dense.forward.0", *functions("Mint.exp", 9)))[0] == "consistent"
    )


def test_functions_do_not_count_where_all_modules_were_compared() -> None:
    modules = ["Cell.a.Dense.forward.0", "Cell.b.Dense.forward.0"]
    ours, theirs = functions("Mint.exp", 9), functions("Functional.exp", 7)
    assert told(calls(*modules, *ours), calls(*modules, *theirs))[0] == "consistent"


def test_modules_without_a_counterpart_on_both_sides_are_incomplete() -> None:
    common = [f"Cell.l{number}.Dense.forward.0" for number in range(9)]
    verdict, lines = told(calls(*common, "Cell.a.Dense.forward.0"), calls(*common, "Cell.b.Dense.forward.0"))
    assert verdict == "incomplete"
    assert lines[0].endswith("both sides have unpaired modules, which were not compared: pair them first")


def test_modules_said_to_have_no_counterpart_are_not_missed() -> None:
    common = [f"Cell.l{number}.Dense.forward.0" for number in range(9)]
    target = calls(*common, "Cell.a.inner.Dense.forward.0", "Cell.a.Block.forward.0")
    golden = calls(*common, "Cell.b.inner.Dense.forward.0", "Cell.b.Block.forward.0")
    mappings = Mappings(layer={"TopLayer": {"a": "unmatched"}})
    comparison = compare_dumps(target, golden, Options(mappings=mappings))
    assert comparison.verdict == "consistent"
    lines = list(verdict_lines(Outcome("", target, golden, comparison, [])))
    said = "Cell.a.inner.Dense.forward.0, Cell.a.Block.forward.0"
    assert f"not compared, as the mapping says they have no counterpart: {said}" in lines
    assert not any("(target)" in line for line in lines)
    assert summary(comparison)["said_unmatched"] == said.split(", ")
    (reason,) = {row.reason for row in comparison.rows if not row.in_golden}
    assert reason == "The layer mapping says that it has no counterpart."
    found_by_itself = Options(mappings=Mappings(automatic=mappings.layer))
    assert compare_dumps(target, golden, found_by_itself).verdict == "incomplete"


def test_what_is_said_of_a_module_of_the_target_is_not_said_of_one_of_that_name_in_the_golden() -> None:
    common = [f"Module.l{number}.Linear.forward.0" for number in range(9)]
    own, theirs = "Module.a.Linear.forward.0", [f"Module.{name}.Linear.forward.0" for name in "abc"]
    target = calls(*common, own, "Module.d.Linear.forward.0", framework="pytorch")
    golden = calls(*common, *theirs, framework="pytorch")
    mappings = Mappings(layer={"TopLayer": {"a": "unmatched"}})
    pairs = compare_dumps(target, golden, Options(mappings=mappings)).pairs
    assert unmatched_modules(pairs) == (["Module.d.Linear.forward.0"], theirs)
    assert expected_alone(pairs) == ({own}, set())


def test_a_frameworks_own_parts_of_a_paired_layer_are_not_missed() -> None:
    target = calls("Cell.rnn._DynamicGRU.forward.0", "Cell.gru.GRU.forward.0")
    target.entries["Cell.rnn._DynamicGRU.forward.0"].parent = "Cell.gru.GRU.forward.0"
    golden = calls("Cell.gru.GRU.forward.0", "Cell.wrapper.Wrapper.forward.0")
    assert told(target, golden)[0] == "consistent"
    target.entries["Cell.rnn._DynamicGRU.forward.0"].parent = None
    assert told(target, golden)[0] == "incomplete"


def test_an_origin_stays_divergent() -> None:
    common = functions("Functional.relu", 1)
    target, golden = calls(*common, *functions("Mint.exp", 3)), calls(*common, *functions("Functional.exp", 3))
    entry = golden.entries[common[0]]
    entry.items[0] = tensor("output.0", [1.0, 3.0], common[0])
    assert told(target, golden)[0] == "divergent"


class TestStructure:
    """Dumps of task structure hold calls and no values."""

    @staticmethod
    def structure(*names: str) -> Dump:
        made = calls(*names)
        for entry in made.entries.values():
            entry.items.clear()
        return made

    def test_two_say_which_calls_are_in_both(self) -> None:
        common = functions("Functional.relu", 2)
        verdict, lines = told(self.structure(*common, "Mint.exp.0.forward"), self.structure(*common))
        assert verdict == "incomplete"
        assert lines[:4] == [
            "INCOMPLETE: neither dump holds any values (task structure records calls alone), so none were compared",
            "  2 calls are in both",
            "  1 call is in the target alone: Mint.exp.0.forward",
            "  to find where values differ, dump both with task statistics or tensor",
        ]

    def test_one_beside_a_dump_of_values_is_named(self) -> None:
        common = functions("Functional.relu", 2)
        verdict, lines = told(calls(*common, "Cell.a.Dense.parameters_grad.0"), self.structure(*common))
        assert verdict == "incomplete"
        assert lines[0].startswith("INCOMPLETE: the golden does not hold any values (task structure")
        assert lines[1] == "  the 2 calls of both are the same"

    def test_dumps_of_values_with_nothing_in_common_stay_divergent(self) -> None:
        verdict, lines = told(calls("Mint.exp.0.forward"), calls("Functional.relu.0.forward"))
        assert (verdict, lines[0]) == ("divergent", "DIVERGENT: nothing in the two dumps could be paired")
