"""MobileNet v1: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pairs.pvt_transformers import Pvt


class MobilenetV1(Pvt):
    size = 64
    network = "MobileNetV1ForImageClassification"
    optimizer = "sgd"
    learning_rate = 0.01
    settings: ClassVar[dict[str, Any]] = {
        "depth_multiplier": 0.25,
        "image_size": 64,
        "num_labels": 10,
        "classifier_dropout_prob": 0.0,
    }


PAIR = MobilenetV1()
