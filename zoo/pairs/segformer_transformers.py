"""SegFormer: attention with reduced keys, a head of pixels: mindone.transformers beside transformers."""

from typing import Any, ClassVar

import numpy as np

from zoo.pair import Batch, CrossEntropy, SameName


class Segformer(SameName):
    network = "SegformerForSemanticSegmentation"
    learning_rate = 0.01
    settings: ClassVar[dict[str, Any]] = {
        "hidden_sizes": [8, 16, 24, 32],
        "depths": [1, 1, 1, 1],
        "num_attention_heads": [1, 2, 2, 4],
        "mlp_ratios": [2, 2, 2, 2],
        "decoder_hidden_size": 16,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "classifier_dropout_prob": 0.0,
        "drop_path_rate": 0.0,
        "num_labels": 5,
    }

    def batch(self, generator: np.random.Generator) -> Batch:
        image = generator.standard_normal((2, 3, 64, 64)).astype(np.float32)
        return {"image": image, "labels": generator.integers(0, 5, (2, 16, 16))}

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        return cross_entropy(net(batch["image"])[0], batch["labels"])


PAIR = Segformer()
