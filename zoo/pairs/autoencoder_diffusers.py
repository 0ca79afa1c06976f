"""The autoencoder of latent diffusion, taken by its mode: mindone.diffusers beside diffusers."""

from typing import Any, ClassVar

import numpy as np

from zoo.pair import Batch, CrossEntropy, SameName


class Autoencoder(SameName):
    zoo = "diffusers"
    network = "AutoencoderKL"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "down_block_types": ("DownEncoderBlock2D", "DownEncoderBlock2D"),
        "up_block_types": ("UpDecoderBlock2D", "UpDecoderBlock2D"),
        "block_out_channels": (16, 32),
        "latent_channels": 4,
        "norm_num_groups": 8,
        "sample_size": 8,
    }

    def batch(self, generator: np.random.Generator) -> Batch:
        def normal(*shape: int) -> np.ndarray:
            return generator.standard_normal(shape).astype(np.float32)

        return {
            "image": normal(2, 3, 8, 8),
        }

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        output = net(batch["image"], sample_posterior=False, return_dict=False)[0]
        return ((output - batch["image"]) ** 2).mean()


PAIR = Autoencoder()
