"""An unconditional UNet that foresees noise: mindone.diffusers beside diffusers."""

from typing import Any, ClassVar

import numpy as np

from zoo.pair import Batch, CrossEntropy, SameName


class UNet2D(SameName):
    zoo = "diffusers"
    network = "UNet2DModel"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "sample_size": 8,
        "layers_per_block": 1,
        "block_out_channels": (16, 32),
        "down_block_types": ("DownBlock2D", "AttnDownBlock2D"),
        "up_block_types": ("AttnUpBlock2D", "UpBlock2D"),
        "norm_num_groups": 8,
        "attention_head_dim": 8,
    }

    def batch(self, generator: np.random.Generator) -> Batch:
        return {
            "image": generator.standard_normal((2, 3, 8, 8)).astype(np.float32),
            "time": generator.integers(0, 1000, 2),
            "noise": generator.standard_normal((2, 3, 8, 8)).astype(np.float32),
        }

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        return ((net(batch["image"], batch["time"], return_dict=False)[0] - batch["noise"]) ** 2).mean()


PAIR = UNet2D()
