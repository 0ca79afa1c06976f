"""The UNet of Stable Diffusion, which attends to a text: mindone.diffusers beside diffusers."""

from typing import Any, ClassVar

import numpy as np

from zoo.pair import Batch, CrossEntropy, SameName


class UNetCondition(SameName):
    zoo = "diffusers"
    network = "UNet2DConditionModel"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "sample_size": 8,
        "layers_per_block": 1,
        "block_out_channels": (16, 32),
        "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
        "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"),
        "norm_num_groups": 8,
        "attention_head_dim": 8,
        "cross_attention_dim": 24,
    }

    def batch(self, generator: np.random.Generator) -> Batch:
        def normal(*shape: int) -> np.ndarray:
            return generator.standard_normal(shape).astype(np.float32)

        return {
            "image": normal(2, 4, 8, 8),
            "time": generator.integers(0, 1000, 2),
            "text": normal(2, 7, 24),
            "noise": normal(2, 4, 8, 8),
        }

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        output = net(batch["image"], batch["time"], batch["text"], return_dict=False)[0]
        return ((output - batch["noise"]) ** 2).mean()


PAIR = UNetCondition()
