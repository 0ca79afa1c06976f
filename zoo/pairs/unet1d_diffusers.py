"""A UNet over time, as of Diffuser: mindone.diffusers beside diffusers."""

from typing import Any, ClassVar

import numpy as np

from zoo.pair import Batch, CrossEntropy, SameName


class Unet1d(SameName):
    zoo = "diffusers"
    network = "UNet1DModel"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "block_out_channels": (8, 16),
        "in_channels": 6,
        "out_channels": 6,
        "down_block_types": ("DownResnetBlock1D", "DownResnetBlock1D"),
        "up_block_types": ("UpResnetBlock1D",),
        "mid_block_type": "MidResTemporalBlock1D",
        "out_block_type": "OutConv1DBlock",
        "act_fn": "mish",
        "norm_num_groups": 8,
        "layers_per_block": 1,
        "use_timestep_embedding": True,
        "flip_sin_to_cos": False,
        "freq_shift": 1.0,
        "time_embedding_type": "positional",
        "downsample_each_block": False,
    }

    def batch(self, generator: np.random.Generator) -> Batch:
        def normal(*shape: int) -> np.ndarray:
            return generator.standard_normal(shape).astype(np.float32)

        return {
            "image": normal(2, 6, 16),
            "time": generator.integers(0, 1000, 2),
            "noise": normal(2, 6, 16),
        }

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        given = net(batch["image"], batch["time"], return_dict=False)[0]
        return ((given - batch["noise"]) ** 2).mean()


PAIR = Unet1d()
