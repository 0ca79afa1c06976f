"""Modules that are one on one side and several on the other: what is joined, by which mapping, and what is not."""

from __future__ import annotations

import math
from collections.abc import Sequence

from built_dumps import dump as built
from built_dumps import entry, paired, rows
from compare_parts import dump, tensor

from msprobe_ms.comparison.pairing.fused_modules import join_fused
from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.model import Dump, Entry


def test_nan_in_one_part_is_nan_in_all() -> None:
    names = ("Cell.a.p.Dense.forward.0", "Cell.a.q.Dense.forward.0")
    values = ([1.0, 2.0], [math.nan, 0.0])
    target = dump([tensor("output.0", each, name) for each, name in zip(values, names, strict=True)])
    golden = dump([tensor("output.0", values[0] + values[1], "Cell.a.whole.Dense.forward.0")])
    ours, _ = join_fused(target, golden, Mappings(layer={"a": {"p + q": "whole"}}))
    (item,) = ours.entries["Cell.a.p + q.Dense.forward.0"].items
    assert all(math.isnan(figure) for figure in (item.maximum, item.minimum, item.mean, item.norm))


class TestWhatIsJoined:
    """Where the parts are no parts of the whole, they stay what they are."""

    WHOLE = entry("Module.a.whole.Linear.forward.0", {"input.0": (2, 4), "output.0": (2, 6)})

    @staticmethod
    def parts(*outputs: tuple[int, ...], inputs: Sequence[tuple[int, ...]] = ((2, 4), (2, 4))) -> Dump:
        names = ("p", "q")
        return built("mindspore", *(
            entry(f"Cell.a.{name}.Dense.forward.0", {"input.0": taken, "output.0": given})
            for name, taken, given in zip(names, inputs, outputs, strict=True)
        ))  # fmt: skip

    def test_parts_that_take_in_other_things_are_not_joined(self) -> None:
        target, golden = self.parts((2, 3), (2, 3), inputs=((2, 4), (2, 5))), built("pytorch", self.WHOLE)
        ours, _ = join_fused(target, golden, Mappings(layer={"a": {"p + q": "whole"}}))
        assert list(ours.entries) == list(target.entries)

    def test_outputs_that_make_no_whole_are_compared_with_nothing(self) -> None:
        mappings = Mappings(layer={"a": {"p + q": "whole"}})
        ours, theirs = join_fused(self.parts((2, 3), (2, 2)), built("pytorch", self.WHOLE), mappings)
        (made,) = ours.entries.values()
        assert [item.suffix for item in made.items] == ["input.0", "output.p.0", "output.q.0"]
        assert [row.matched for row in pair(ours, theirs, mappings)[0].rows] == [True, False, False, False]

    def test_a_bias_that_not_all_parts_have_stands_for_itself(self) -> None:
        """Whisper's keys have none."""
        bias = {"parameters.weight": (3, 4), "parameters.bias": (3,)}
        target = built(
            "mindspore",
            entry("Cell.a.p.Dense.forward.0", bias),
            entry("Cell.a.q.Dense.forward.0", {"parameters.weight": (3, 4)}),
        )
        whole = entry("Module.a.whole.Linear.forward.0", {"parameters.weight": (6, 4), "parameters.bias": (6,)})
        mappings = Mappings(layer={"a": {"p + q": "whole"}})
        (found,) = pair(*join_fused(target, built("pytorch", whole), mappings), mappings)
        joined = "Cell.a.p + q.Dense.forward.0"
        assert rows([found]) == [
            (f"{joined}.parameters.weight", f"{whole.name}.parameters.weight"),
            (f"{joined}.parameters.p.bias", None),
            (None, f"{whole.name}.parameters.bias"),
        ]

    def test_a_gradient_that_does_not_reach_all_parts(self) -> None:
        """Nothing is missing on either side, but what is no whole is compared with nothing."""
        forward, backward = {"input.0": (2, 4), "output.0": (2, 3)}, {"input.0": (2, 3), "output.0": (2, 4)}
        target = built(
            "mindspore",
            entry("Cell.a.p.Dense.forward.0", forward),
            entry("Cell.a.q.Dense.forward.0", forward),
            entry("Cell.a.q.Dense.backward.0", backward),
        )
        theirs = entry("Module.a.whole.Linear.backward.0", {"input.0": (2, 6), "output.0": (2, 4)})
        mappings = Mappings(layer={"a": {"p + q": "whole"}})
        both = join_fused(target, built("pytorch", self.WHOLE, theirs), mappings)
        found = pair(*both, mappings)
        assert paired(found)["Cell.a.p + q.Dense.backward.0"] == theirs.name
        assert [row.matched for row in found[1].rows] == [False, True, False]
        item = both[0].entries["Cell.a.p + q.Dense.backward.0"].items[1]
        assert item.suffix == "output.0" and item.norm is None and item.data_name is None

    def test_a_gradient_of_zeros_in_one_part_is_none_where_the_whole_has_more(self) -> None:
        """Beside keys and queries of a single token, whose gradients are zero on both sides, they are joined."""
        names, (some, none, more) = ("p", "q"), ([[3.0, 4.0]], [[0.0, 0.0]], [[1.0, 2.0]])

        def of(path: str, values: object) -> Dump:
            forward = [
                tensor("input.0", [[1.0]], f"{path}.forward.0"),
                tensor("output.0", [[1.0]], f"{path}.forward.0"),
            ]
            weight = tensor("parameters.weight", values, f"{path}.forward.0")
            gradient = tensor("parameters_grad.weight", values, f"{path}.parameters_grad.0")
            return dump([*forward, weight, gradient])

        def joined(whole: list[list[float]]) -> list[str]:
            parts = [of(f"Cell.a.{name}.Dense", each) for name, each in zip(names, (some, none), strict=True)]
            target = dump([item for part in parts for each in part.entries.values() for item in each.items])
            golden = of("Cell.a.whole.Dense", [*some, *whole])
            ours, _ = join_fused(target, golden, Mappings(layer={"a": {"p + q": "whole"}}))
            return [".".join(item.path) for item in ours.entries["Cell.a.p + q.Dense.parameters_grad.0"].items]

        assert joined(none) == ["weight"]
        assert joined(more) == ["p.weight", "q.weight"]

    def test_what_runs_inside_of_them_does_not_count(self) -> None:
        """Layers and functions in fused modules have no counterparts; that alone makes nothing incomplete."""
        shapes = {"input.0": (2, 4), "output.0": (2, 3)}
        parts = [
            made
            for name in ("p", "q")
            for made in (
                entry(f"Cell.a.{name}.inner.Dense.forward.0", shapes, f"Cell.a.{name}.Column.forward.0"),
                entry(f"Cell.a.{name}.Column.forward.0", shapes),
            )
        ]
        inner = entry("Module.a.whole.gather.Linear.forward.0", {"output.0": (2, 6)}, "Module.a.whole.Row.forward.0")
        whole = entry("Module.a.whole.Row.forward.0", {"input.0": (2, 4), "output.0": (2, 6)})
        options = Options(mappings=Mappings(layer={"a": {"p + q": "whole"}}))
        found = compare_dumps(built("mindspore", *parts), built("pytorch", inner, whole), options)
        assert found.verdict == "consistent"


class TestOneAfterAnother:
    """What further parts make of what the first ones gave: ``torch.nn.MultiheadAttention`` beside four layers."""

    MAPPINGS = Mappings(layer={"Attention": {"inner.q + inner.k + o": "whole"}})
    WHOLE = entry(
        "Module.a.whole.MultiheadAttention.forward.0",
        {"input.0": (2, 4), "output.0": (2, 4), "parameters.in_proj_weight": (6, 4)},
    )
    BACK = entry("Module.a.whole.MultiheadAttention.backward.0", {"input.0": (2, 4), "output.0": (2, 4)})

    @staticmethod
    def parts(last: tuple[int, ...] = (2, 4)) -> list[Entry]:
        above = "Cell.a.Attention.forward.0"
        weight = {"parameters.weight": (3, 4)}
        return [
            *(
                entry(
                    f"Cell.a.inner.{name}.Dense.forward.0",
                    {"input.0": (2, 4), "output.0": (2, 3), **weight},
                    "Cell.a.inner.Inner.forward.0",
                )
                for name in "qk"
            ),
            entry("Cell.a.inner.Inner.forward.0", {"input.0": (2, 4), "output.0": (2, 3)}, above),
            entry(
                "Cell.a.o.Dense.forward.0", {"input.0": (2, 3), "output.0": last, "parameters.weight": (4, 3)}, above
            ),
            entry(above, {"input.0": (2, 4), "output.0": (2, 4)}),
        ]

    def test_the_first_take_in_and_the_last_gives_out(self) -> None:
        target, golden = built("mindspore", *self.parts()), built("pytorch", self.WHOLE)
        ours, theirs = join_fused(target, golden, self.MAPPINGS)
        joined = "Cell.a.inner.q + inner.k + o.Dense.forward.0"
        assert list(ours.entries) == ["Cell.a.inner.Inner.forward.0", joined, "Cell.a.Attention.forward.0"]
        assert ours.entries[joined].parent == "Cell.a.Attention.forward.0"  # what encloses all of them
        (found,) = [each for each in pair(ours, theirs, self.MAPPINGS) if each.matched]
        assert rows([found]) == [
            (f"{joined}.input.0", f"{self.WHOLE.name}.input.0"),
            (f"{joined}.parameters.in_proj_weight", f"{self.WHOLE.name}.parameters.in_proj_weight"),
            (f"{joined}.output.0", f"{self.WHOLE.name}.output.0"),
            (f"{joined}.parameters.o.weight", None),
        ]

    def test_the_last_keeps_its_figures(self) -> None:
        names = ("Cell.a.p.Dense.forward.0", "Cell.a.o.Dense.forward.0")
        target = dump(
            [
                tensor("input.0", [1.0, 2.0], names[0]),
                tensor("output.0", [3.0, 4.0], names[0]),
                tensor("input.0", [5.0, 6.0], names[1]),
                tensor("output.0", [7.0, -8.0], names[1]),
            ]
        )
        whole = "Cell.a.whole.Dense.forward.0"
        golden = dump([tensor("input.0", [1.0, 2.0], whole), tensor("output.0", [7.0, -8.0], whole)])
        ours, _ = join_fused(target, golden, Mappings(layer={"a": {"p + o": "whole"}}))
        taken, given = ours.entries["Cell.a.p + o.Dense.forward.0"].items
        assert (taken.suffix, taken.maximum) == ("input.0", 2.0)
        assert (given.suffix, given.maximum, given.minimum) == ("output.0", 7.0, -8.0)

    def test_the_gradient_of_what_was_taken_in_is_the_sum_of_the_first(self) -> None:
        backward = [
            entry("Cell.a.o.Dense.backward.0", {"input.0": (2, 4), "output.0": (2, 3)}),
            *(entry(f"Cell.a.inner.{name}.Dense.backward.0", {"input.0": (2, 3), "output.0": (2, 4)}) for name in "kq"),
        ]
        target, golden = built("mindspore", *self.parts(), *backward), built("pytorch", self.WHOLE, self.BACK)
        ours, theirs = join_fused(target, golden, self.MAPPINGS)
        joined = "Cell.a.inner.q + inner.k + o.Dense.backward.0"
        assert sorted(item.name for item in ours.entries[joined].items) == [f"{joined}.input.0", f"{joined}.output.0"]
        assert paired(pair(ours, theirs, self.MAPPINGS))[joined] == self.BACK.name

    def test_the_gradients_of_later_parameters_stay_their_own(self) -> None:
        names = ("a.inner.q", "a.inner.k", "a.o")
        gradients = [entry(f"Cell.{name}.Dense.parameters_grad.0", {"weight": (3, 4)}) for name in names]
        theirs = entry("Module.a.whole.MultiheadAttention.parameters_grad.0", {"in_proj_weight": (6, 4)})
        target = built("mindspore", *self.parts(), *gradients)
        ours, _ = join_fused(target, built("pytorch", self.WHOLE, theirs), self.MAPPINGS)
        assert [name for name in ours.entries if "parameters_grad" in name] == [
            "Cell.a.inner.q + inner.k + o.Dense.parameters_grad.0", "Cell.a.o.Dense.parameters_grad.0"
        ]  # fmt: skip

    def test_what_ends_otherwise_is_not_the_same(self) -> None:
        target = built("mindspore", *self.parts(last=(2, 5)))
        ours, _ = join_fused(target, built("pytorch", self.WHOLE), self.MAPPINGS)
        assert list(ours.entries) == list(target.entries)
