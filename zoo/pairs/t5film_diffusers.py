"""T5 with FiLM, a decoder of spectrograms conditioned by time: mindone.diffusers beside diffusers."""

import math
from typing import Any, ClassVar

import numpy as np

from zoo.pair import Batch, CrossEntropy, SameName


class T5Film(SameName):
    zoo = "diffusers"
    network = "T5FilmDecoder"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "input_dims": 12,
        "targets_length": 8,
        "d_model": 32,
        "num_layers": 2,
        "num_heads": 4,
        "d_kv": 8,
        "d_ff": 64,
        "dropout_rate": 0.0,
    }

    def golden(self) -> Any:
        import torch
        from diffusers.models.transformers import t5_film_transformer

        def gelu(self: Any, x: Any) -> Any:
            """With the constant of six digits that mindone writes."""
            return 0.5 * x * (1.0 + torch.tanh(0.797885 * (x + 0.044715 * torch.pow(x, 3.0))))

        assert math.isclose(math.sqrt(2 / math.pi), 0.797885, rel_tol=1e-6)
        t5_film_transformer.NewGELUActivation.forward = gelu
        return super().golden()

    def batch(self, generator: np.random.Generator) -> Batch:
        def normal(*shape: int) -> np.ndarray:
            return generator.standard_normal(shape).astype(np.float32)

        return {
            "encoded": normal(2, 6, 32),
            "noisy": normal(2, 8, 12),
            "time": generator.random(2).astype(np.float32),
            "wanted": normal(2, 8, 12),
        }

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        mask = batch["encoded"][..., 0] * 0 + 1
        output = net([(batch["encoded"], mask)], batch["noisy"], batch["time"])
        return ((output - batch["wanted"]) ** 2).mean()


PAIR = T5Film()
