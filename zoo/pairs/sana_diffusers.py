"""Sana, linear attention and convolutions that gate: mindone.diffusers beside diffusers."""

from typing import Any, ClassVar

import numpy as np

from zoo.pair import Batch, CrossEntropy, SameName


class Sana(SameName):
    zoo = "diffusers"
    network = "SanaTransformer2DModel"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "patch_size": 1,
        "in_channels": 4,
        "out_channels": 4,
        "num_layers": 2,
        "attention_head_dim": 8,
        "num_attention_heads": 2,
        "num_cross_attention_heads": 2,
        "cross_attention_head_dim": 8,
        "cross_attention_dim": 16,
        "caption_channels": 8,
        "sample_size": 8,
    }

    def batch(self, generator: np.random.Generator) -> Batch:
        def normal(*shape: int) -> np.ndarray:
            return generator.standard_normal(shape).astype(np.float32)

        return {
            "image": normal(2, 4, 8, 8),
            "words": normal(2, 6, 8),
            "time": generator.integers(0, 1000, 2),
            "noise": normal(2, 4, 8, 8),
        }

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        given = net(batch["image"], batch["words"], batch["time"], return_dict=False)[0]
        return ((given - batch["noise"]) ** 2).mean()


PAIR = Sana()
