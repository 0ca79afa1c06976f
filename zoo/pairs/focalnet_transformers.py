"""FocalNet, modulation in place of attention: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pair import Classifier, CrossEntropy, SameName


class FocalNet(SameName, Classifier):
    network = "FocalNetForImageClassification"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "image_size": 32,
        "patch_size": 4,
        "embed_dim": 16,
        "depths": [1, 1],
        "focal_levels": [2, 2],
        "focal_windows": [3, 3],
        "hidden_sizes": [16, 32],
        "drop_path_rate": 0.0,
        "num_labels": 10,
    }

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        return cross_entropy(net(batch["image"])[0], batch["labels"])


PAIR = FocalNet()
