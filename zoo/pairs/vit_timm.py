"""A vision transformer with normalized queries and keys and layer scale: mindcv beside timm."""

import re
from functools import partial
from typing import Any

from zoo.pair import Classifier
from zoo.pairs._mindcv import use_exact_gelu

SETTINGS = {"patch_size": 8, "embed_dim": 48, "depth": 3, "num_heads": 4, "mlp_ratio": 2.0, "qk_norm": True}


class ViT(Classifier):
    optimizer = "adam"
    learning_rate = 1e-3

    def golden(self) -> Any:
        from timm.models import VisionTransformer

        return VisionTransformer(img_size=self.size, num_classes=self.classes, init_values=0.5, **SETTINGS)

    def target(self) -> Any:
        from mindcv.models.vit import VisionTransformer
        from mindspore import nn

        norm = partial(nn.LayerNorm, epsilon=1e-6)
        net = VisionTransformer(
            image_size=self.size, num_classes=self.classes, norm_layer=norm, init_values=0.5, **SETTINGS
        )
        use_exact_gelu(net)
        return net

    def parameter(self, path: str) -> str:
        return re.sub(r"\b(ls\d)\.weight$", r"\1.gamma", super().parameter(path))


PAIR = ViT()
