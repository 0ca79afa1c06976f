"""CrossViT, two sizes of patches that exchange class tokens: mindcv beside timm."""

from typing import Any

from zoo.pair import Classifier
from zoo.pairs._mindcv import use_exact_gelu, use_layer_norm_epsilon

SETTINGS: dict[str, Any] = {
    "patch_size": (8, 16),
    "embed_dim": (24, 32),
    "depth": ((1, 1, 0), (1, 2, 0)),
    "num_heads": (4, 4),
    "mlp_ratio": (2.0, 2.0, 1.0),
    "qkv_bias": True,
}


class CrossViT(Classifier):
    size = 32
    optimizer = "adam"
    learning_rate = 1e-3
    names = ((r"^(pos_embed|cls_token)\.(\d)$", r"\1_\2"), (r"\b(fusion\.\d)\.0\.", r"\1."))

    def golden(self) -> Any:
        from timm.models.crossvit import CrossVit

        return CrossVit(img_size=self.size, num_classes=self.classes, **SETTINGS)

    def target(self) -> Any:
        from mindcv.models.crossvit import VisionTransformer

        net = VisionTransformer(img_size=[self.size, self.size], num_classes=self.classes, **SETTINGS)
        use_exact_gelu(net)
        use_layer_norm_epsilon(net, 1e-6)
        return net


PAIR = CrossViT()
