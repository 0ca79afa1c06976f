"""AuraFlow, joint and single attention: mindone.diffusers beside diffusers."""

from typing import Any, ClassVar

import numpy as np

from zoo.pair import Batch, CrossEntropy, SameName


class Auraflow(SameName):
    zoo = "diffusers"
    network = "AuraFlowTransformer2DModel"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "sample_size": 8,
        "patch_size": 2,
        "in_channels": 4,
        "num_mmdit_layers": 1,
        "num_single_dit_layers": 1,
        "attention_head_dim": 8,
        "num_attention_heads": 4,
        "caption_projection_dim": 32,
        "joint_attention_dim": 32,
        "out_channels": 4,
        "pos_embed_max_size": 64,
    }

    def batch(self, generator: np.random.Generator) -> Batch:
        def normal(*shape: int) -> np.ndarray:
            return generator.standard_normal(shape).astype(np.float32)

        return {
            "image": normal(2, 4, 8, 8),
            "words": normal(2, 6, 32),
            "time": generator.random(2).astype(np.float32),
            "noise": normal(2, 4, 8, 8),
        }

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        given = net(batch["image"], batch["words"], batch["time"], return_dict=False)[0]
        return ((given - batch["noise"]) ** 2).mean()


PAIR = Auraflow()
