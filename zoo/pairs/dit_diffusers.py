"""DiT: a transformer whose norms are set by class and time: mindone.diffusers beside diffusers."""

from typing import Any, ClassVar

import numpy as np

from zoo.pair import Batch, CrossEntropy, SameName


def _never_dropped(part: Any) -> None:
    """No setting turns off the drawing of classes to be dropped."""
    if type(part).__name__ == "LabelEmbedding":
        part.dropout_prob = 0.0


class DiT(SameName):
    zoo = "diffusers"
    network = "DiTTransformer2DModel"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "num_attention_heads": 4,
        "attention_head_dim": 8,
        "in_channels": 4,
        "out_channels": 4,
        "num_layers": 2,
        "sample_size": 8,
        "patch_size": 2,
        "num_embeds_ada_norm": 1000,
        "norm_num_groups": 8,
    }

    def golden(self) -> Any:
        net = super().golden()
        for module in net.modules():
            _never_dropped(module)
        return net

    def target(self) -> Any:
        net = super().target()
        for _, cell in net.cells_and_names():
            _never_dropped(cell)
        return net

    def batch(self, generator: np.random.Generator) -> Batch:
        def normal(*shape: int) -> np.ndarray:
            return generator.standard_normal(shape).astype(np.float32)

        return {
            "image": normal(2, 4, 8, 8),
            "time": generator.integers(0, 1000, 2),
            "label": generator.integers(0, 1000, 2),
            "noise": normal(2, 4, 8, 8),
        }

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        output = net(batch["image"], batch["time"], batch["label"], return_dict=False)[0]
        return ((output - batch["noise"]) ** 2).mean()


PAIR = DiT()
