"""A single call in another precision."""

from __future__ import annotations

from dataclasses import replace

from compare_nodes import REST, node, only, origins

from msprobe_ms.comparison.model import Pair, Row


class TestWidths:
    """A single call in another precision is told, though its rounding explains the difference."""

    @staticmethod
    def calls(narrow: int, count: int = 20) -> list[Pair]:
        pairs = [node(f"Cell.{i}.Dense.forward.0", input_0=REST, output_0=REST) for i in range(count)]
        for pair in pairs[:narrow]:
            given = pair.rows[1]
            assert given.target is not None
            pair.rows[1] = Row(given.target._replace(dtype="Float16"), given.golden, None, 3e-4, 4e-3)
        return pairs

    def test_one_call_in_half_precision_is_named(self) -> None:
        found = only(*self.calls(1))
        assert (found.kind, found.target) == ("precision", "Cell.0.Dense.forward.0.output.0")
        assert "its output.0 is Float16 against Float32, unlike almost every other call" in found.reason
        assert found.required_tolerance == 3e-4

    def test_a_layer_that_holds_its_weight_in_half_precision_is_named_though_it_casts_its_result(self) -> None:
        pairs = self.calls(0)
        weight = node("Cell.7.Dense.forward.0", parameters_weight=REST).rows[0]
        assert weight.target is not None
        pairs[7].rows.insert(1, Row(weight.target._replace(dtype="Float16"), weight.golden, None, 3e-4, 4e-3))
        found = only(*pairs)
        assert (found.kind, found.target) == ("precision", "Cell.7.Dense.forward.0.parameters.weight")
        assert "its parameters.weight is Float16 against Float32, unlike almost every other call" in found.reason

    def test_a_network_that_hands_on_what_its_first_layer_narrowed_is_in_mixed_precision(self) -> None:
        pairs = self.calls(20)
        for pair in pairs[1:]:
            taken = pair.rows[0]
            assert taken.target is not None
            pair.rows[0] = Row(taken.target._replace(dtype="Float16"), taken.golden, None, 3e-4, 4e-3)
        assert origins(*pairs) == []

    @staticmethod
    def narrowed_inside(narrow: int, count: int = 3) -> list[Pair]:
        """Layers whose only recorded call takes in and gives out float16 in the first ``narrow`` of them."""
        pairs = []
        for number in range(count):
            layer, product = f"Cell.{number}.Dense.forward.0", f"Primitive.matmul.MatMul.{number}.forward"
            inside = node(product, layer, input_0=0, output_0=0.1)
            for place, row in enumerate(inside.rows if number < narrow else ()):
                assert row.target is not None
                inside.rows[place] = Row(row.target._replace(dtype="Float16"), row.golden, None, 3e-4, 4e-3)
            pairs += [inside, node(layer, None, input_0=0, output_0=0.1)]
            pairs += [node(f"Cell.{number}.{i}.ReLU.forward.0", input_0=0.1, output_0=0.1) for i in range(12)]
        return pairs

    def test_a_call_is_named_though_its_input_was_cast_inside_the_layer_around_it(self) -> None:
        found = only(*self.narrowed_inside(1))
        assert (found.kind, found.target) == ("precision", "Primitive.matmul.MatMul.0.forward.output.0")
        assert found.reason.startswith("its output.0 is Float16")
        assert found.details[0] == "it is called in Cell.0.Dense.forward.0"
        assert found.details[1].endswith("the inputs of the enclosing call have the same dtype on both sides")

    def test_a_layer_and_the_functions_it_is_made_of_are_one_exception(self) -> None:
        """Of a small net they are more than a tenth of all calls."""
        narrow, *others = (f"Cell.{number}.Dense.forward.0" for number in range(3))
        pairs = []
        for name in (narrow, *others):
            inside = [
                node(f"Primitive.{each}.{name[5]}.forward", name, input_0=0, output_0=0.1) for each in ("mm", "add")
            ]
            pairs += [*inside, node(name, None, input_0=0, output_0=0.1, parameters_weight=REST)]
        for pair in pairs[:3]:
            for number, row in enumerate(pair.rows[1:], 1):
                assert row.target is not None
                pair.rows[number] = Row(row.target._replace(dtype="Float16"), row.golden, None, 3e-4, 4e-3)
        assert only(*pairs).kind == "precision"

    def test_what_a_net_casts_its_data_to_is_no_exception_of_each_layer(self) -> None:
        pairs = self.calls(0)
        for pair in pairs[:2]:
            halves = [(row.target._replace(dtype="Float16"), row.golden) for row in pair.rows if row.target is not None]
            pair.rows[:] = [Row(*both, None, 3e-4, 4e-3) for both in halves]
        inside = [replace(pair, target=replace(pair.target, parent="Cell.Net.forward.0")) for pair in pairs]
        assert origins(*inside, node("Cell.Net.forward.0", None, input_0=0.0, output_0=REST)) == []

    def test_where_all_calls_of_a_kind_are_narrowed_it_is_meant(self) -> None:
        """Three of 42 calls, but all the matrix products there are."""
        assert origins(*self.narrowed_inside(3)) == []

    def test_mixed_precision_is_nobodys_fault(self) -> None:
        assert origins(*self.calls(8)) == []


def test_a_call_whose_result_has_no_statistics_is_named_all_the_same() -> None:
    """An empty tensor in half precision beside one in single precision."""
    pairs = TestWidths.calls(1)
    row = pairs[0].rows[1]
    row.deviation = row.tolerance = None
    found = only(*pairs)
    assert found.kind == "precision" and found.details[-1] == "output.0 could not be compared"


def test_a_mask_of_another_width_loses_nothing() -> None:
    """The zeros and the fill of a mask are the same in half precision."""
    pairs = TestWidths.calls(1)
    pairs[0].rows[1].deviation = 0.0
    assert origins(*pairs) == []
