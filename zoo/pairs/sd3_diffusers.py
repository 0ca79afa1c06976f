"""The transformer of Stable Diffusion 3, image and text joined in attention: mindone.diffusers beside diffusers."""

from typing import Any, ClassVar

import numpy as np

from zoo.pair import Batch, CrossEntropy, SameName


class SD3(SameName):
    zoo = "diffusers"
    network = "SD3Transformer2DModel"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "sample_size": 16,
        "patch_size": 2,
        "in_channels": 4,
        "num_layers": 2,
        "attention_head_dim": 8,
        "num_attention_heads": 4,
        "joint_attention_dim": 24,
        "caption_projection_dim": 32,
        "pooled_projection_dim": 20,
        "out_channels": 4,
        "pos_embed_max_size": 8,
        "qk_norm": "rms_norm",
    }

    def target(self) -> Any:
        net = super().target()
        # mindone trains the table of places, a buffer in diffusers.
        net.pos_embed.pos_embed.requires_grad = False
        return net

    def batch(self, generator: np.random.Generator) -> Batch:
        def normal(*shape: int) -> np.ndarray:
            return generator.standard_normal(shape).astype(np.float32)

        return {
            "image": normal(2, 4, 16, 16),
            "text": normal(2, 6, 24),
            "pooled": normal(2, 20),
            "time": generator.integers(0, 1000, 2),
            "velocity": normal(2, 4, 16, 16),
        }

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        output = net(batch["image"], batch["text"], batch["pooled"], batch["time"], return_dict=False)[0]
        return ((output - batch["velocity"]) ** 2).mean()


PAIR = SD3()
