"""Whoever has modules left on both sides is told what pairs them, by what they gave."""

from __future__ import annotations

from compare_parts import dump, tensor

from msprobe_ms.comparison.model import Comparison, Mapped
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.comparison.reporting.mapping_advice import mapping_advice, mapping_lines
from msprobe_ms.comparison.run import Options, compare_dumps

COMMON = "Cell.common.Dense.forward.0"
OURS, THEIRS = "Cell.a.Dense.forward.0", "Cell.b.Dense.forward.0"


def compared(ours: list[str], theirs: list[str], options: Options) -> Comparison:
    target, golden = (
        dump([tensor("output.0", [1.0, float(number)], name) for number, name in enumerate(names)])
        for names in (ours, theirs)
    )
    return compare_dumps(target, golden, options)


def test_modules_that_one_side_alone_has_left_need_no_mapping() -> None:
    comparison = compared([COMMON, OURS], [COMMON], Options())
    assert (mapping_advice(comparison), list(mapping_lines(comparison))) == ("", [])


def test_what_was_given_is_what_to_correct() -> None:
    for options, begins in (
        (Options(), "to pair these modules, compare again with -lm"),
        (Options(align=True), "-lm found no counterpart for these modules"),
        (Options(mappings=Mappings(files=("mine.yaml",))), "to pair these modules, correct mine.yaml"),
    ):
        comparison = compared([COMMON, OURS], [COMMON, "Cell.b.ReLU.forward.0"], options)
        assert mapping_advice(comparison).startswith(begins)


def test_lines_that_pair_them_are_shown_whole_up_to_a_page() -> None:
    comparison = compared([COMMON, OURS], [COMMON, THEIRS], Options())

    def shown(proposed: list[str]) -> list[str]:
        comparison.mapped = Mapped(files=("mine.yaml",), proposed=proposed)
        advice, *lines = mapping_lines(comparison)
        assert advice.startswith("to pair these modules, correct mine.yaml; these lines pair them")
        return [line.removeprefix("  ") for line in lines]

    rules = ["Block:", *(f"  name{number}: other" for number in range(24))]
    assert shown(rules) == rules
    longer = [*rules, "  last: other"]
    assert shown(longer) == [*longer[:24], "and 2 more lines: proposed_mapping in the summary"]
    longer[23] = "Attention:"
    assert shown(longer) == [*longer[:23], "and 3 more lines: proposed_mapping in the summary"]
