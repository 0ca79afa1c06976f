"""YOLOS: a vision transformer whose extra tokens are boxes: mindone.transformers beside transformers."""

from typing import Any, ClassVar

import numpy as np

from zoo.pair import Batch, CrossEntropy, SameName


class Yolos(SameName):
    network = "YolosForObjectDetection"
    optimizer = "sgd"
    learning_rate = 0.02
    settings: ClassVar[dict[str, Any]] = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "image_size": [32, 48],
        "patch_size": 8,
        "num_detection_tokens": 6,
        "num_labels": 5,
    }

    def batch(self, generator: np.random.Generator) -> Batch:
        return {
            "image": generator.standard_normal((2, 3, 32, 48)).astype(np.float32),
            "boxes": generator.random((2, 6, 4)).astype(np.float32),
            "labels": generator.integers(0, 6, 12),
        }

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        output = net(batch["image"], return_dict=False)
        logits, boxes = output[0], output[1]
        apart = abs(boxes - batch["boxes"]).mean()
        return cross_entropy(logits.reshape(-1, 6), batch["labels"]) + 5 * apart


PAIR = Yolos()
