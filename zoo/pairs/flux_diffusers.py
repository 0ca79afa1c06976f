"""Flux: streams of image and text apart, then as one: mindone.diffusers beside diffusers."""

from typing import Any, ClassVar

import numpy as np

from zoo.pair import Batch, CrossEntropy, SameName


def _attention(query: Any, key: Any, value: Any, **_: Any) -> Any:
    from mindspore import mint

    scores = mint.matmul(query, key.swapaxes(-2, -1)) * query.shape[-1] ** -0.5
    return mint.matmul(mint.softmax(scores, dim=-1), value)


class Flux(SameName):
    zoo = "diffusers"
    network = "FluxTransformer2DModel"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "patch_size": 1,
        "in_channels": 16,
        "num_layers": 1,
        "num_single_layers": 2,
        "attention_head_dim": 16,
        "num_attention_heads": 2,
        "joint_attention_dim": 24,
        "pooled_projection_dim": 20,
        "axes_dims_rope": (4, 6, 6),
    }

    def target(self) -> Any:
        from mindone.diffusers.models import attention_dispatch

        # mindone's function ends in float16 and in a kernel that a CPU lacks, also where it is asked for float32.
        attention_dispatch.scaled_dot_product_attention = _attention
        return super().target()

    def batch(self, generator: np.random.Generator) -> Batch:
        def normal(*shape: int) -> np.ndarray:
            return generator.standard_normal(shape).astype(np.float32)

        return {
            "image": normal(2, 16, 16),
            "text": normal(2, 6, 24),
            "pooled": normal(2, 20),
            "time": generator.random(2).astype(np.float32),
            "velocity": normal(2, 16, 16),
        }

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        import torch

        return self._loss(net, batch, torch.tensor)

    def target_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        import mindspore as ms

        return self._loss(net, batch, ms.Tensor)

    def _loss(self, net: Any, batch: dict[str, Any], tensor: Any) -> Any:
        places = np.stack([np.zeros(16), np.arange(16) // 4, np.arange(16) % 4], 1).astype(np.float32)
        output = net(
            batch["image"],
            encoder_hidden_states=batch["text"],
            pooled_projections=batch["pooled"],
            timestep=batch["time"],
            img_ids=tensor(places),
            txt_ids=tensor(places[:6] * 0),
            return_dict=False,
        )[0]
        return ((output - batch["velocity"]) ** 2).mean()


PAIR = Flux()
