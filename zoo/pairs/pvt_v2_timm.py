"""A pyramid vision transformer with reduced keys and values: mindcv beside timm."""

from typing import Any

from zoo.pair import Classifier
from zoo.pairs._mindcv import cells, pad_both_sides, use_exact_gelu, use_layer_norm_epsilon

SETTINGS: dict[str, Any] = {
    "depths": (1, 1, 1, 1),
    "embed_dims": (16, 24, 32, 48),
    "num_heads": (1, 2, 4, 4),
    "sr_ratios": (8, 4, 2, 1),
    "mlp_ratios": (2, 2, 2, 2),
    "qkv_bias": True,
}


class PVTv2(Classifier):
    size = 64
    optimizer = "adam"
    learning_rate = 1e-3
    names = (
        (r"^patch_embed_list\.0\b", "patch_embed"),
        (r"^patch_embed_list\.(\d)", r"stages.\1.downsample"),
        (r"^block_list\.(\d)", r"stages.\1.blocks"),
        (r"^norm_list\.(\d)", r"stages.\1.norm"),
        (r"\bdwconv\.dwconv\b", "dwconv"),
    )

    def golden(self) -> Any:
        from timm.models import PyramidVisionTransformerV2
        from torch import nn

        return PyramidVisionTransformerV2(num_classes=self.classes, norm_layer=nn.LayerNorm, **SETTINGS)

    def target(self) -> Any:
        from mindcv.models.pvtv2 import PyramidVisionTransformerV2

        net = PyramidVisionTransformerV2(img_size=self.size, num_classes=self.classes, **SETTINGS)
        use_exact_gelu(net)
        use_layer_norm_epsilon(net, 1e-5)
        # Patches overlap by half their size on both sides; mindcv lets "same" choose.
        for _, patches in cells(net, "OverlapPatchEmbed"):
            pad_both_sides(patches.proj)
        return net


PAIR = PVTv2()
