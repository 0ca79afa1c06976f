"""CogVideoX, text and video in one attention: mindone.diffusers beside diffusers."""

from typing import Any, ClassVar

import numpy as np

from zoo.pair import Batch, CrossEntropy, SameName


class Cogvideox(SameName):
    zoo = "diffusers"
    network = "CogVideoXTransformer3DModel"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "num_attention_heads": 2,
        "attention_head_dim": 8,
        "in_channels": 4,
        "out_channels": 4,
        "time_embed_dim": 8,
        "text_embed_dim": 8,
        "num_layers": 2,
        "sample_width": 8,
        "sample_height": 8,
        "sample_frames": 5,
        "patch_size": 2,
        "temporal_compression_ratio": 4,
        "max_text_seq_length": 6,
    }

    def batch(self, generator: np.random.Generator) -> Batch:
        def normal(*shape: int) -> np.ndarray:
            return generator.standard_normal(shape).astype(np.float32)

        return {
            "image": normal(2, 2, 4, 8, 8),
            "words": normal(2, 6, 8),
            "time": generator.integers(0, 1000, 2),
            "noise": normal(2, 2, 4, 8, 8),
        }

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        given = net(batch["image"], batch["words"], batch["time"], return_dict=False)[0]
        return ((given - batch["noise"]) ** 2).mean()


PAIR = Cogvideox()
