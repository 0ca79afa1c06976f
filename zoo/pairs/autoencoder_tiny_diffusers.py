"""A tiny autoencoder of residual blocks: mindone.diffusers beside diffusers."""

from typing import Any, ClassVar

import numpy as np

from zoo.pair import Batch, CrossEntropy, SameName


class AutoencoderTiny(SameName):
    zoo = "diffusers"
    network = "AutoencoderTiny"
    optimizer = "sgd"
    learning_rate = 0.01
    settings: ClassVar[dict[str, Any]] = {
        "encoder_block_out_channels": (8, 8),
        "decoder_block_out_channels": (8, 8),
        "num_encoder_blocks": (1, 1),
        "num_decoder_blocks": (1, 1),
    }

    def batch(self, generator: np.random.Generator) -> Batch:
        def normal(*shape: int) -> np.ndarray:
            return generator.standard_normal(shape).astype(np.float32)

        return {
            "image": normal(2, 3, 16, 16),
            "noise": normal(2, 3, 16, 16),
        }

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        given = net(batch["image"], return_dict=False)[0]
        return ((given - batch["noise"]) ** 2).mean()


PAIR = AutoencoderTiny()
