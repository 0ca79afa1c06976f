"""TimeSformer: a film, attention over time apart from space: mindone.transformers beside transformers."""

from typing import Any, ClassVar

import numpy as np

from zoo.pair import Batch, CrossEntropy, SameName


class Timesformer(SameName):
    network = "TimesformerForVideoClassification"
    learning_rate = 0.01
    settings: ClassVar[dict[str, Any]] = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "image_size": 32,
        "patch_size": 8,
        "num_frames": 3,
        "drop_path_rate": 0.0,
        "num_labels": 5,
    }

    def batch(self, generator: np.random.Generator) -> Batch:
        film = generator.standard_normal((2, 3, 3, 32, 32)).astype(np.float32)
        return {"film": film, "labels": generator.integers(0, 5, 2)}

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        return cross_entropy(net(batch["film"])[0], batch["labels"])


PAIR = Timesformer()
