"""PixArt: one modulation of norms for all blocks, attention to a text: mindone.diffusers beside diffusers."""

from typing import Any, ClassVar

import numpy as np

from zoo.pair import Batch, CrossEntropy, SameName


class PixArt(SameName):
    zoo = "diffusers"
    network = "PixArtTransformer2DModel"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "num_attention_heads": 4,
        "attention_head_dim": 8,
        "in_channels": 4,
        "out_channels": 8,
        "num_layers": 2,
        "cross_attention_dim": 32,
        "sample_size": 8,
        "patch_size": 2,
        "caption_channels": 24,
        "norm_type": "ada_norm_single",
        "use_additional_conditions": False,
    }

    def batch(self, generator: np.random.Generator) -> Batch:
        def normal(*shape: int) -> np.ndarray:
            return generator.standard_normal(shape).astype(np.float32)

        return {
            "image": normal(2, 4, 8, 8),
            "text": normal(2, 6, 24),
            "time": generator.integers(0, 1000, 2),
            "noise": normal(2, 8, 8, 8),
        }

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        output = net(
            batch["image"],
            encoder_hidden_states=batch["text"],
            timestep=batch["time"],
            added_cond_kwargs={"resolution": None, "aspect_ratio": None},
            return_dict=False,
        )[0]
        return ((output - batch["noise"]) ** 2).mean()


PAIR = PixArt()
