"""Records that every later use contradicts."""

from __future__ import annotations

from compare_nodes import FAULT, REST, node, origins


class TestLaterUses:
    def test_a_record_every_later_use_refutes_is_no_origin(self) -> None:
        recorded = (0.5, 0.25)
        pairs = [
            node(
                "Functional.cross_entropy.0.backward", None, (0.75, 0.5), given=recorded, input_0=REST, output_0=FAULT
            ),
            node("Tensor.reshape.0.backward", None, recorded, input_0=REST, output_0=REST),
        ]
        assert origins(*pairs) == []
        assert pairs[0].rows[1].misrecorded and not pairs[0].rows[1].differs

    def test_a_fault_that_was_taken_in_stays_one(self) -> None:
        assert origins(
            node("Cell.a.L.forward.0", None, (0.5, 0.25), input_0=REST, output_0=FAULT),
            node("Cell.b.L.forward.0", None, (0.5, 0.25), input_0=FAULT, output_0=FAULT),
        ) == ["Cell.a.L.forward.0.output.0"]

    def test_later_uses_of_what_a_call_took_in_say_nothing_of_its_result_in_another_order(self) -> None:
        """A layer that begins as the identity, whose result is rolled: the four statistics are those of its input."""
        attention, layer = "Cell.attn.Attention.forward.0", "Cell.attn.v.Dense.forward.0"
        assert origins(
            node(layer, attention, (0.5, 0.25), input_0=REST, output_0=FAULT),
            node(attention, None, (0.5, 0.25), given=(0.75, 0.5), input_0=REST, output_0=FAULT),
        ) == [f"{layer}.output.0"]
