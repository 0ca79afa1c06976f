"""Hiera: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pair import Classifier, CrossEntropy, SameName


class Hiera(SameName, Classifier):
    network = "HieraForImageClassification"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "embed_dim": 16,
        "image_size": [64, 64],
        "patch_padding": [3, 3],
        "depths": [1, 1, 1, 1],
        "num_heads": [1, 2, 4, 8],
        "masked_unit_size": [8, 8],
        "num_labels": 10,
    }

    size = 64

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        return cross_entropy(net(batch["image"])[0], batch["labels"])


PAIR = Hiera()
