"""TextNet, convolutions joined with batch norms: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pair import Classifier, CrossEntropy, SameName


class TextNet(SameName, Classifier):
    size = 64
    network = "TextNetForImageClassification"
    optimizer = "sgd"
    learning_rate = 0.05
    settings: ClassVar[dict[str, Any]] = {
        "image_size": [64, 64],
        "stem_out_channels": 16,
        "conv_layer_kernel_sizes": [[[3, 3], [3, 3]], [[3, 3], [1, 3]], [[3, 3]], [[3, 1]]],
        "conv_layer_strides": [[1, 2], [2, 1], [2], [1]],
        "hidden_sizes": [16, 16, 24, 32, 32],
        "num_labels": 10,
    }

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        return cross_entropy(net(batch["image"])[0], batch["labels"])


PAIR = TextNet()
