"""Gradients behind a ReLU that switches."""

from __future__ import annotations

from compare_nodes import REST, node, origins

from msprobe_ms.comparison.model import Pair


class TestReluSwitching:
    """A ReLU whose 20,000 inputs differ by 1e-6: an element or so is on the other side, and its gradient wholly off."""

    def relu(self, gradient: float, size: int = 20_000) -> list[Pair]:
        return [
            node("Cell.a.relu.ReLU.forward.0", size=size, input_0=0.1, output_0=0.1),
            node("Cell.b.fc.Dense.parameters_grad.0", parameters_grad_weight=REST),
            node("Cell.a.relu.ReLU.backward.0", size=size, input_0=REST, output_0=gradient),
            node("Cell.a.fc.Dense.parameters_grad.0", parameters_grad_weight=gradient),
            node("Cell.a.fc.Dense.backward.0", size=size, input_0=gradient, output_0=gradient),
        ]

    def test_one_switched_element_is_no_origin_and_what_follows_from_it_neither(self) -> None:
        assert origins(*self.relu(gradient=500)) == []

    def test_a_wrong_gradient_is_more_than_that(self) -> None:
        assert origins(*self.relu(gradient=10_000)) == ["Cell.a.relu.ReLU.backward.0.output.0"]

    def test_few_elements_do_not_switch(self) -> None:
        assert origins(*self.relu(gradient=500, size=100)) == ["Cell.a.relu.ReLU.backward.0.output.0"]

    def test_a_smooth_module_has_no_kinks(self) -> None:
        assert origins(
            node("Cell.a.fc.Dense.forward.0", size=20_000, input_0=0.1, output_0=0.1),
            node("Cell.a.fc.Dense.backward.0", size=20_000, input_0=REST, output_0=500),
        ) == ["Cell.a.fc.Dense.backward.0.output.0"]

    def test_small_differences_inside_a_module_do_not_hide_the_modules_own_fault(self) -> None:
        whole = "Cell.a.Attention.backward.0"
        assert origins(
            node("Cell.a.drop.Dropout.forward.0", "Cell.a.Attention.forward.0", size=20_000, input_0=0.1, output_0=0.1),
            node("Cell.a.Attention.forward.0", None, size=20_000, input_0=0.1, output_0=0.1),
            node("Cell.a.drop.Dropout.backward.0", whole, size=20_000, input_0=100, output_0=100),
            node(whole, None, size=20_000, input_0=REST, output_0=50_000),
        ) == [f"{whole}.output.0"]

    def test_a_smooth_function_has_no_kinks_and_one_that_has_is_judged_by_what_it_takes_in(self) -> None:
        def found(name: str, taken: float) -> list[str]:
            return origins(
                node(f"Functional.{name}.0.forward", size=20_000, given=(2.5, 1.0), input_0=taken, output_0=0.9),
                node(f"Functional.{name}.0.backward", size=20_000, input_0=REST, output_0=500),
            )

        for kinked in ("relu", "relu_", "elu_", "l1_loss", "hinge_embedding_loss", "triplet_margin_loss"):
            assert found(kinked, 0.1) == [], kinked
            assert len(found(kinked, 0.0)) == 1, kinked
        for smooth in ("gelu", "softmax", "avg_pool2d", "smooth_l1_loss", "soft_margin_loss"):
            assert len(found(smooth, 0.1)) == 1, smooth
