"""SigLIP: a tower that pools by attention, classified: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pair import Classifier, CrossEntropy, SameName


class Siglip(SameName, Classifier):
    network = "SiglipForImageClassification"
    optimizer = "sgd"
    learning_rate = 0.01
    settings: ClassVar[dict[str, Any]] = {
        "vision_config": {
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "image_size": 32,
            "patch_size": 8,
        },
        "num_labels": 10,
    }

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        return cross_entropy(net(batch["image"])[0], batch["labels"])


PAIR = Siglip()
