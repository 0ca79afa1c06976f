"""DINOv2 with registers: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pairs.pvt_transformers import Pvt


class Dinov2WithRegisters(Pvt):
    size = 32
    network = "Dinov2WithRegistersForImageClassification"
    optimizer = "sgd"
    learning_rate = 0.01
    settings: ClassVar[dict[str, Any]] = {
        "image_size": 32,
        "patch_size": 8,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "num_labels": 10,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "num_register_tokens": 2,
    }

    def target(self) -> Any:
        """Without the registers in the mean of patches: mindone counts them, the original leaves them out."""
        from mindone.transformers import Dinov2WithRegistersForImageClassification
        from mindspore import mint

        class WithoutRegisters(Dinov2WithRegistersForImageClassification):
            def construct(self, pixel_values: Any) -> Any:
                tokens = self.dinov2_with_registers(pixel_values)[0]
                patches = tokens[:, 1 + self.config.num_register_tokens :]
                return (self.classifier(mint.cat([tokens[:, 0], patches.mean(dim=1)], dim=1)),)

        return WithoutRegisters(**self.config())


PAIR = Dinov2WithRegisters()
