"""A Swin transformer V2 of two stages: mindcv, queries, keys and values apart on flat tokens, beside timm, on maps."""

import re
from typing import Any

import numpy as np

from zoo.pair import Classifier
from zoo.pairs._mindcv import cells, make_constant, use_exact_gelu, use_layer_norm_epsilon


class SwinV2(Classifier):
    optimizer = "adam"
    learning_rate = 1e-3
    names = (
        (r"\battn\.([qv])\.bias$", r"attn.\1_bias"),
        (r"\battn\.[qkv]\.weight$", "attn.qkv.weight"),
        (r"\brelative_position_bias\.cpb_mlp(\d)\b", r"cpb_mlp.\1"),
        (r"^head\b", "head.fc"),
    )

    def golden(self) -> Any:
        from timm.models import SwinTransformerV2

        return SwinTransformerV2(
            img_size=self.size,
            embed_dim=24,
            depths=(2, 2),
            num_heads=(2, 4),
            window_size=4,
            drop_path_rate=0.0,
            num_classes=self.classes,
        )

    def target(self) -> Any:
        from mindcv.models.swintransformerv2 import SwinTransformerV2

        net = SwinTransformerV2(
            image_size=self.size,
            embed_dim=24,
            depths=[2, 2],
            num_heads=[2, 4],
            window_size=4,
            drop_path_rate=0.0,
            num_classes=self.classes,
        )
        use_exact_gelu(net)
        use_layer_norm_epsilon(net, 1e-5)
        for _, block in cells(net, "SwinTransformerBlock"):
            make_constant(block.attn.relative_position_bias, "relative_coords_table")
            make_constant(block.attn.relative_position_bias, "relative_position_index")
            if block.shift_size:
                make_constant(block, "attn_mask")
        return net

    def parameter(self, path: str) -> str:
        # mindcv merges patches at the end of a stage, timm at the beginning of the next.
        path = re.sub(r"^layers\.(\d)\.downsample", lambda found: f"layers.{int(found[1]) + 1}.downsample", path)
        return super().parameter(path)

    def value(self, path: str, golden: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        if found := re.search(r"\battn\.([qkv])\.weight$", path):
            golden = np.split(golden, 3)["qkv".index(found[1])]
        return super().value(path, golden, shape)


PAIR = SwinV2()
