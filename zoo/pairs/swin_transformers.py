"""Swin, attention in shifted windows: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pair import Classifier, CrossEntropy, SameName


class SwinTransformer(SameName, Classifier):
    unused = frozenset(
        f"swin.encoder.layers.{layer}.blocks.{block}.attention.self.relative_position_index"
        for layer in range(2)
        for block in range(2)
    )
    size = 32
    network = "SwinForImageClassification"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "image_size": 32,
        "patch_size": 2,
        "embed_dim": 16,
        "depths": [2, 2],
        "num_heads": [2, 4],
        "window_size": 4,
        "drop_path_rate": 0.0,
        "num_labels": 10,
    }

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        return cross_entropy(net(batch["image"])[0], batch["labels"])


PAIR = SwinTransformer()
