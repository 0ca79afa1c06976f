"""Latte, attention over space and time in turn: mindone.diffusers beside diffusers."""

from typing import Any, ClassVar

import numpy as np

from zoo.pair import Batch, CrossEntropy, SameName


class Latte(SameName):
    zoo = "diffusers"
    network = "LatteTransformer3DModel"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "sample_size": 8,
        "num_layers": 2,
        "patch_size": 2,
        "attention_head_dim": 8,
        "num_attention_heads": 2,
        "caption_channels": 8,
        "in_channels": 4,
        "cross_attention_dim": 16,
        "out_channels": 4,
        "attention_bias": True,
        "activation_fn": "gelu-approximate",
        "num_embeds_ada_norm": 1000,
        "norm_type": "ada_norm_single",
        "norm_elementwise_affine": False,
        "norm_eps": 1e-06,
        "video_length": 2,
    }

    def batch(self, generator: np.random.Generator) -> Batch:
        def normal(*shape: int) -> np.ndarray:
            return generator.standard_normal(shape).astype(np.float32)

        return {
            "image": normal(2, 4, 2, 8, 8),
            "words": normal(2, 6, 8),
            "time": generator.integers(0, 1000, 2),
            "noise": normal(2, 4, 2, 8, 8),
        }

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        given = net(batch["image"], batch["time"], batch["words"], return_dict=False)[0]
        return ((given - batch["noise"]) ** 2).mean()


PAIR = Latte()
