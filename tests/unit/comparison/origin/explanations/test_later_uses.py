"""Records that every later use contradicts."""

from __future__ import annotations

from compare_nodes import FAULT, REST, node, origins


class TestLaterUses:
    def test_a_record_every_later_use_refutes_is_no_origin(self) -> None:
        recorded = (0.5, 0.25)
        pairs = [
            node("Functional.cross_entropy.0.backward", None, recorded, input_0=REST, output_0=FAULT),
            node("Tensor.reshape.0.backward", None, recorded, input_0=REST, output_0=REST),
        ]
        assert origins(*pairs) == []
        assert pairs[0].rows[1].misrecorded and not pairs[0].rows[1].differs

    def test_a_fault_that_was_taken_in_stays_one(self) -> None:
        assert origins(
            node("Cell.a.L.forward.0", None, (0.5, 0.25), input_0=REST, output_0=FAULT),
            node("Cell.b.L.forward.0", None, (0.5, 0.25), input_0=FAULT, output_0=FAULT),
        ) == ["Cell.a.L.forward.0.output.0"]
