"""SAM: windows of attention over an image, a decoder that answers points with masks: mindone beside transformers."""

from typing import Any, ClassVar

import numpy as np

from zoo.pair import Batch, CrossEntropy, SameName


class Sam(SameName):
    unused = frozenset({"prompt_encoder.shared_embedding.positional_embedding"})
    network = "SamModel"
    learning_rate = 0.01
    settings: ClassVar[dict[str, Any]] = {
        "vision_config": {
            "hidden_size": 32,
            "output_channels": 16,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "image_size": 64,
            "patch_size": 8,
            "window_size": 3,
            "global_attn_indexes": [1],
            "mlp_dim": 64,
            "num_pos_feats": 8,
            "attn_implementation": "eager",
        },
        "prompt_encoder_config": {
            "hidden_size": 16,
            "image_size": 64,
            "patch_size": 8,
            "mask_input_channels": 4,
        },
        "mask_decoder_config": {
            "hidden_size": 16,
            "mlp_dim": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "iou_head_hidden_dim": 16,
        },
    }

    def target(self) -> Any:
        net = super().target()
        # mindone trains the random waves of the places, a buffer in transformers.
        net.shared_image_embedding.positional_embedding.requires_grad = False
        return net

    def batch(self, generator: np.random.Generator) -> Batch:
        return {
            "image": generator.standard_normal((2, 3, 64, 64)).astype(np.float32),
            "points": generator.uniform(0, 64, (2, 1, 2, 2)).astype(np.float32),
            "masks": generator.integers(0, 2, (2, 32, 32)).astype(np.float32),
        }

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        output = net(pixel_values=batch["image"], input_points=batch["points"], return_dict=False)
        scores, masks = output[0], output[1]
        return ((masks - batch["masks"][:, None, None]) ** 2).mean() + scores.mean()


PAIR = Sam()
