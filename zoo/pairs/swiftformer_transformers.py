"""SwiftFormer, additive attention within convolutions: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pair import Classifier, CrossEntropy, SameName


class SwiftFormer(SameName, Classifier):
    size = 64
    network = "SwiftFormerForImageClassification"
    optimizer = "sgd"
    learning_rate = 0.01
    settings: ClassVar[dict[str, Any]] = {
        "image_size": 64,
        "depths": [1, 1, 2, 1],
        "embed_dims": [8, 16, 24, 32],
        "drop_path_rate": 0.0,
        "num_labels": 10,
    }

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        return cross_entropy(net(batch["image"])[0], batch["labels"])


PAIR = SwiftFormer()
