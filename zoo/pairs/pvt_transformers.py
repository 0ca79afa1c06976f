"""PVT, attention over reduced keys: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pair import Classifier, CrossEntropy, SameName


class Pvt(SameName, Classifier):
    size = 64
    network = "PvtForImageClassification"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "image_size": 64,
        "depths": [1, 1, 1, 1],
        "hidden_sizes": [8, 16, 24, 32],
        "num_attention_heads": [1, 2, 3, 4],
        "drop_path_rate": 0.0,
        "hidden_dropout_prob": 0.0,
        "num_labels": 10,
    }

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        return cross_entropy(net(batch["image"])[0], batch["labels"])


PAIR = Pvt()
