"""CLIP: a tower for images, one for texts, and the loss of contrast: mindone.transformers beside transformers."""

from typing import Any, ClassVar

import numpy as np

from zoo.pair import Batch, CrossEntropy, SameName


class Clip(SameName):
    network = "CLIPModel"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "text_config": {
            "vocab_size": 97,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "max_position_embeddings": 16,
            "eos_token_id": 96,
        },
        "vision_config": {
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "image_size": 32,
            "patch_size": 8,
        },
        "projection_dim": 24,
    }

    def batch(self, generator: np.random.Generator) -> Batch:
        tokens = generator.integers(3, 96, (4, 10))
        tokens[:, -1] = 96
        image = generator.standard_normal((4, 3, 32, 32)).astype(np.float32)
        return {"tokens": tokens, "image": image, "labels": np.arange(4)}

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        output = net(input_ids=batch["tokens"], pixel_values=batch["image"])
        of_image, of_text = output[0], output[1]
        return (cross_entropy(of_image, batch["labels"]) + cross_entropy(of_text, batch["labels"])) / 2


PAIR = Clip()
