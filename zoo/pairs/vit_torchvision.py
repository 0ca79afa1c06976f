"""A vision transformer: mindcv, out of products and softmax, beside torchvision's MultiheadAttention."""

from functools import partial
from typing import Any

from zoo.pair import Classifier
from zoo.pairs._mindcv import use_exact_gelu


class ViT(Classifier):
    optimizer = "adam"
    learning_rate = 1e-3
    names = (
        (r"^cls_token$", "class_token"),
        (r"^pos_embed$", "encoder.pos_embedding"),
        (r"^patch_embed\.proj\b", "conv_proj"),
        (r"^blocks\.(\d)", r"encoder.layers.encoder_layer_\1"),
        (r"\bnorm([12])\b", r"ln_\1"),
        (r"\battn\.qkv\.", "self_attention.in_proj_"),
        (r"\battn\.proj\b", "self_attention.out_proj"),
        (r"\bmlp\.fc1\b", "mlp.0"),
        (r"\bmlp\.fc2\b", "mlp.3"),
        (r"^norm\b", "encoder.ln"),
        (r"^head\b", "heads.head"),
    )

    def golden(self) -> Any:
        from torch import nn
        from torchvision.models import VisionTransformer

        net = VisionTransformer(self.size, 8, 3, 4, 48, 96, num_classes=self.classes)
        nn.init.normal_(net.heads.head.weight, std=0.1)  # torchvision begins with zeros, which give no gradient
        return net

    def target(self) -> Any:
        from mindcv.models.vit import VisionTransformer
        from mindspore import nn

        net = VisionTransformer(
            image_size=self.size,
            patch_size=8,
            embed_dim=48,
            depth=3,
            num_heads=4,
            mlp_ratio=2.0,
            norm_layer=partial(nn.LayerNorm, epsilon=1e-6),
            num_classes=self.classes,
        )
        use_exact_gelu(net)
        return net


PAIR = ViT()
