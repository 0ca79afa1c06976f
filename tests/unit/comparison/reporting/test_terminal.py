"""What the terminal says of what could not be compared as it was meant."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
from compare_parts import dump, tensor

from msprobe_ms.comparison.model import Allowance, Origin
from msprobe_ms.comparison.reporting.facts import report_line
from msprobe_ms.comparison.reporting.terminal import is_provable, verdict_lines
from msprobe_ms.comparison.reporting.thresholds import Thresholds
from msprobe_ms.comparison.run import Options, Outcome, compare_dumps
from msprobe_ms.dump.model import Dump

ENTRIES = [f"Functional.relu.{number}.forward" for number in range(3)]


def with_files(folder: Path, figures: bool = True) -> Dump:
    """A tensor dump of three calls, with statistics or without."""
    changed = {} if figures else dict.fromkeys(("maximum", "minimum", "mean", "norm"))
    (folder / "dump_tensor_data").mkdir(parents=True)
    items = [tensor("output.0", np.float32([1, number]), entry, **changed) for number, entry in enumerate(ENTRIES)]
    for number, item in enumerate(items):
        np.save(folder / "dump_tensor_data" / str(item.data_name), np.float32([1, number]))
    made = dump(items, folder=folder)
    made.mode = "tensor"
    return made


def told(target: Dump, golden: Dump) -> list[str]:
    comparison = compare_dumps(target, golden, Options())
    return list(verdict_lines(Outcome("", target, golden, comparison, [])))


def test_only_calls_can_be_proved() -> None:
    names = ("Cell.net.Net.forward.0", "Cell.net.fc.Dense.forward.0", "loss.0.debug", "Optimizer.SGD.0.forward")
    made = dump([tensor("output.0", np.float32([1, 2]), name) for name in names])
    made.entries[names[1]].parent = names[0]
    provable = {name: is_provable(Origin(f"{name}.output.0", name, "output", "", {}), made) for name in names}
    assert provable == {names[0]: False, names[1]: True, names[2]: False, names[3]: False}


def test_tensors_that_could_not_be_read_are_counted_and_the_first_is_named(tmp_path: Path) -> None:
    target, golden = with_files(tmp_path / "target"), with_files(tmp_path / "golden")
    lost = tmp_path / "golden" / "dump_tensor_data" / f"{ENTRIES[1]}.output.0.npy"
    lost.unlink()
    lines = told(target, golden)
    assert lines[0].startswith("CONSISTENT")
    assert lines[1:] == [
        "3 values compared (tensor); paired: 100 % of calls",
        "1 of 3 tensors could not be read; their statistics were compared instead, which show less",
        f"  the first: {lost}: no such file",
    ]


def test_a_side_without_its_files_is_told_even_where_its_statistics_agree(tmp_path: Path) -> None:
    target, golden = with_files(tmp_path / "target"), with_files(tmp_path / "golden")
    shutil.rmtree(tmp_path / "target" / "dump_tensor_data")
    assert told(target, golden)[2].startswith("3 of 3 tensors could not be read; their statistics")


def test_where_no_statistics_stood_in_nothing_was_compared(tmp_path: Path) -> None:
    target, golden = with_files(tmp_path / "target", figures=False), with_files(tmp_path / "golden", figures=False)
    (tmp_path / "target" / "dump_tensor_data" / f"{ENTRIES[2]}.output.0.npy").write_bytes(b"no array")
    assert told(target, golden)[2] == "1 of 3 tensors could not be read; nothing of them was compared"


def test_dumps_whose_files_are_whole_say_nothing_of_files(tmp_path: Path) -> None:
    assert not any("could not be read" in line for line in told(with_files(tmp_path / "a"), with_files(tmp_path / "b")))


def calls(*named: tuple[str, float]) -> Dump:
    return dump([tensor("output.0", np.float32([1, amount]), f"{name}.forward.0") for name, amount in named])


def test_what_differs_is_told_where_most_was_not_compared_too() -> None:
    """A bias that drifts a little beyond its tolerance, and no origin."""
    target = calls(("Cell.a.L", 2.0), ("Cell.mine.L", 3.0))
    comparison = compare_dumps(target, calls(("Cell.a.L", 2.0), ("Cell.theirs.L", 3.0)), Options())
    (row,) = comparison.pairs[0].rows
    row.deviation, row.tolerance = 2e-5, 1e-5

    def explained() -> list[str]:
        lines = list(verdict_lines(Outcome("", target, target, comparison, [])))
        at = next(number for number, line in enumerate(lines) if "INCOMPLETE" in line)
        return lines[at + 1 : at + 3]

    where = "  the reason of each is in the table's column Explained By; --node NAME tells more of one"
    small = "  1 value is beyond its tolerance because small errors add up"
    assert explained() == [small, where]
    row.explained = Allowance("optimizer updates", 1.0)
    assert explained() == ["  1 value is beyond its tolerance because earlier updates carry rounding", where]


def diverging(*command: str) -> list[str]:
    name = "Cell.my net.Dense"
    target, golden = (
        dump([tensor(f"{state}.0", np.float32([1, given]), f"{name}.forward.0") for state, given in both])
        for both in ((("input", 2), ("output", 4.00123)), (("input", 2), ("output", 4)))
    )
    return list(verdict_lines(Outcome("", target, golden, compare_dumps(target, golden, Options()), []), command))


def test_a_divergence_says_how_to_see_more_of_it() -> None:
    beginning = "details of this call: "
    command = Options(arguments=("-lm", "my map.yaml")).command(Path("my dump"), Path("golden"))
    (line,) = (line for line in diverging(*command) if line.startswith(beginning))
    assert line == (
        f"{beginning}msprobe compare -tp 'my dump' -gp golden -lm 'my map.yaml' "
        "--node 'Cell.my net.Dense.forward.0.output.0'"
    )
    # From Python with mappings that are no files.
    gone = Options(arguments=None).command(Path("dump"), Path("golden"))
    assert not any(beginning in line for line in diverging(*gone))


def test_a_divergence_whose_summary_is_written_says_how_to_prove_it() -> None:
    name = "Cell.a.Dense.forward.0"
    target, golden = (dump([tensor("output.0", np.float32([1, given]), name)]) for given in (4.5, 4))
    for given, told in ((target, 1), (golden, 0)):
        comparison = compare_dumps(given, golden, Options())
        files = [Path("my out/compare_summary_1.json")]
        lines = list(verdict_lines(Outcome("", given, golden, comparison, files)))
        command = "next, to see which side is wrong and why: msprobe prove 'my out/compare_summary_1.json'"
        assert lines.count(command) == told


def test_the_excess_is_told_as_a_multiple_that_thresholds_take() -> None:
    """The factor times the roundings of the dtype lets it pass, as it says, and hardly less does."""
    (line,) = [line for line in diverging() if "its deviation is" in line]
    told = re.fullmatch(r" +its deviation is (?P<times>\S+) times its tolerance", line)
    assert told is not None
    factor = float(told["times"])

    def verdict(times: float) -> str:
        target, golden = (
            dump([tensor("output.0", np.float32([1, given]), "Cell.a.Dense.forward.0")]) for given in (4.00123, 4)
        )
        changes = {"tolerances": {"roundings": {"float32": times * 96.0}}}
        return compare_dumps(target, golden, Options(thresholds=Thresholds(changes))).verdict

    assert verdict(1.0) == verdict(factor * 0.98) == "divergent"
    assert verdict(factor) == "consistent"


def test_a_random_operation_is_told_though_what_follows_it_lies_far_apart() -> None:
    def step(drawn: float) -> Dump:
        drop, layer = "Cell.drop.Dropout.forward.0", "Cell.fc.Dense.forward.0"
        given = np.float32([drawn, 3])
        return dump(
            [
                tensor("input.0", np.float32([2, 3]), drop),
                *(tensor(place, given, entry) for place, entry in (("output.0", drop), ("input.0", layer))),
                tensor("output.0", given, layer),
            ]
        )

    lines = told(step(0.0), step(4.0))
    assert lines[0].startswith("INCOMPLETE: values agree up to a random operation")
    assert lines[1].strip() == "Cell.drop.Dropout.forward.0.output.0"


def test_doubtful_origins_have_a_line_each_after_the_first() -> None:
    target, golden = (
        dump([
            tensor(f"{state}.0", np.float32([1, each]), f"Cell.{number}.Dense.forward.0")
            for number in range(6)
            for state, each in (("input", number + 2.0), ("output", number + 3.0 + apart))
        ])
        for apart in (0.5, 0.0)
    )  # fmt: skip
    lines = told(target, golden)
    assert lines[:2] == ["DIVERGENT: the error begins in forward, at", "  Cell.0.Dense.forward.0.output.0"]
    perhaps = [line for line in lines if line.startswith("perhaps also at ")]
    assert [line.split()[3] for line in perhaps] == [f"Cell.{n}.Dense.forward.0.output.0:" for n in (1, 2, 3)]
    assert perhaps[-1].endswith(", 2 more, see the summary")
    assert sum("look at" in line for line in lines) == 1


def test_the_report_to_open_first_is_named_and_what_names_the_others() -> None:
    names = ("layer_mapping_1.yaml", "compare_result_1.xlsx", "advisor_1.txt", "compare_summary_1.json")
    assert report_line([Path("out") / name for name in names]) == (
        "report: out/compare_result_1.xlsx (open it first; 3 other files are listed in compare_summary_1.json)"
    )
    assert report_line([Path("out/node.txt")]) == "report: out/node.txt"


def test_modules_without_a_counterpart_are_one_line_with_their_share() -> None:
    common = [(f"Cell.l{number}.L", 2.0) for number in range(5)]
    lines = told(calls(*common, ("Cell.a.b.L", 3.0), ("Cell.c.L", 3.0)), calls(*common, ("Cell.d.L", 3.0)))
    alone = "2 of the target and 1 of the golden have no counterpart"
    assert f"5 values compared (statistics), {alone}; paired: 5 of 7 modules, 5 of 7 calls; " in lines[1]
    assert lines[1].endswith("without a counterpart: a.b, c (target), d (golden)")


def test_values_that_one_of_two_paired_calls_alone_has_are_told_as_such() -> None:
    both = [tensor("output.0", np.float32([1, 2]), f"Cell.{name}.L.forward.0") for name in "abc"]
    alone = tensor("output.1", np.float32([1, 2]), "Cell.b.L.forward.0")
    assert told(dump([*both, alone]), dump(both))[1].startswith(
        "3 values compared (statistics), 1 has no counterpart (1 is passed or returned by one side only, in calls of "
        "Cell.b.L); paired: 3 of 3 modules, 100 % of calls"
    )
    elsewhere = tensor("input.0", np.float32([1, 2]), "Cell.b.L.forward.0")
    line = told(dump([*both, alone]), dump([*both, elsewhere]))[1]
    assert (
        "1 of the target and 1 of the golden have no counterpart (2 are passed or returned by one side only, in calls "
        "of Cell.b.L); "
    ) in line


def test_inner_values_of_calls_that_are_compared_as_one_are_told_apart() -> None:
    """A Dense is ``matmul`` and ``bias_add`` on one side, ``linear`` on the other."""
    x, weight, product, bias = np.ones((4, 3), "f4"), np.ones((3, 5), "f4"), np.full((4, 5), 3, "f4"), np.ones(5, "f4")
    first, second, whole = (
        "Primitive.m.MatMul.0.forward",
        "Primitive.b.BiasAdd.0.forward",
        "Functional.linear.0.forward",
    )
    ours = [
        *(tensor(place, each, first) for place, each in (("input.0", x), ("input.1", weight), ("output.0", product))),
        *(tensor(place, each, second) for place, each in (("input.0", product), ("input.1", bias))),
        tensor("output.0", product + 1, second),
    ]
    given = (("input.0", x), ("input.1", weight), ("input.2", bias), ("output.0", product + 1))
    golden = dump([tensor(place, each, whole) for place, each in given], "pytorch")
    lines = told(dump(ours), golden)
    inner = "need none: intermediate results of computations that the two sides split into different calls"
    assert f"4 values compared (statistics), 2 have no counterpart (they {inner}); paired: " in lines[1]
    other = tensor("output.0", weight, "Functional.other.0.forward")
    lines = told(dump([*ours, other]), golden)
    assert f"4 values compared (statistics), 3 have no counterpart (2 {inner}); paired: " in lines[1]


def test_values_of_another_float_dtype_are_counted_and_other_integers_are_not() -> None:
    def recorded(precise: str, index: str) -> Dump:
        values = [tensor("output.0", np.ones(2, precise), entry) for entry in ENTRIES[:2]]
        return dump([*values, tensor("output.0", np.ones(2, index), ENTRIES[2])])

    lines = told(recorded("float16", "int32"), recorded("float32", "int64"))
    said = [line for line in lines if "dtype" in line]
    (line,) = [line for line in said if line.startswith("the dtypes of 2 values differ, the first is ")]
    assert f"{ENTRIES[0]}.output.0" in line and "float16" in line.lower() and "float32" in line.lower()
    same = told(recorded("float32", "int32"), recorded("float32", "int64"))
    assert not any(line.startswith("the dtype") for line in same)
