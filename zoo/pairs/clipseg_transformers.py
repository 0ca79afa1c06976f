"""CLIPSeg, an image segmented by a text: mindone.transformers beside transformers."""

from typing import Any, ClassVar

import numpy as np

from zoo.pair import Batch, CrossEntropy, SameName


class ClipSeg(SameName):
    network = "CLIPSegForImageSegmentation"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "text_config": {
            "vocab_size": 99,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "max_position_embeddings": 16,
            "eos_token_id": 98,
        },
        "vision_config": {
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "image_size": 32,
            "patch_size": 8,
        },
        "projection_dim": 24,
        "extract_layers": [0, 1, 2],
        "reduce_dim": 16,
        "decoder_intermediate_size": 48,
    }

    def batch(self, generator: np.random.Generator) -> Batch:
        tokens = generator.integers(3, 97, (2, 8))
        tokens[:, -1] = 98
        image = generator.standard_normal((2, 3, 32, 32)).astype(np.float32)
        return {"tokens": tokens, "image": image, "wanted": generator.random((2, 32, 32)).astype(np.float32)}

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        logits = net(input_ids=batch["tokens"], pixel_values=batch["image"], return_dict=False)[0]
        return ((logits - batch["wanted"]) ** 2).mean()


PAIR = ClipSeg()
