"""The prior of unCLIP: a transformer over text, time and image: mindone.diffusers beside diffusers."""

from typing import Any, ClassVar

import numpy as np

from zoo.pair import Batch, CrossEntropy, SameName


class Prior(SameName):
    zoo = "diffusers"
    network = "PriorTransformer"
    optimizer = "adam"
    learning_rate = 1e-3
    unused = frozenset({"clip_mean", "clip_std"})
    settings: ClassVar[dict[str, Any]] = {
        "num_attention_heads": 2,
        "attention_head_dim": 8,
        "num_layers": 2,
        "embedding_dim": 16,
        "num_embeddings": 7,
        "additional_embeddings": 4,
    }

    def batch(self, generator: np.random.Generator) -> Batch:
        def normal(*shape: int) -> np.ndarray:
            return generator.standard_normal(shape).astype(np.float32)

        return {
            "image": normal(2, 16),
            "time": generator.integers(0, 1000, 2),
            "text": normal(2, 16),
            "words": normal(2, 7, 16),
            "noise": normal(2, 16),
        }

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        given = net(batch["image"], batch["time"], batch["text"], batch["words"], return_dict=False)[0]
        return ((given - batch["noise"]) ** 2).mean()


PAIR = Prior()
