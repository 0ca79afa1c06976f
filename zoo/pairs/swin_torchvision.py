"""A Swin transformer of two stages: mindcv, with queries, keys and values apart, beside torchvision's one product."""

import re
from typing import Any

import numpy as np

from zoo.pair import Classifier
from zoo.pairs._mindcv import cells, make_constant, use_exact_gelu, use_layer_norm_epsilon


class Swin(Classifier):
    optimizer = "adam"
    learning_rate = 1e-3
    names = (
        (r"^patch_embed\.proj\b", "features.0.0"),
        (r"^patch_embed\.norm\b", "features.0.2"),
        (r"\brelative_bias\.", ""),
        (r"\battn\.[qkv]\.", "attn.qkv."),
        (r"\bmlp\.fc1\b", "mlp.0"),
        (r"\bmlp\.fc2\b", "mlp.3"),
        (r"^classifier\b", "head"),
    )

    def golden(self) -> Any:
        from torchvision.models import SwinTransformer

        return SwinTransformer(
            patch_size=[4, 4],
            embed_dim=24,
            depths=[2, 2],
            num_heads=[2, 4],
            window_size=[4, 4],
            stochastic_depth_prob=0.0,
            num_classes=self.classes,
        )

    def target(self) -> Any:
        from mindcv.models.swintransformer import SwinTransformer

        net = SwinTransformer(
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
            make_constant(block.attn.relative_bias, "index")
            if block.shift_size:
                make_constant(block, "attn_mask")
        return net

    def parameter(self, path: str) -> str:
        if found := re.fullmatch(r"layers\.(\d)\.(?:blocks\.(\d)|downsample)\.(.+)", path):
            stage = 2 * int(found[1]) + 1
            path = f"features.{stage}.{found[2]}.{found[3]}" if found[2] else f"features.{stage + 1}.{found[3]}"
        return super().parameter(path)

    def value(self, path: str, golden: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        if found := re.search(r"\battn\.([qkv])\.", path):
            golden = np.split(golden, 3)["qkv".index(found[1])]
        return super().value(path, golden, shape)

    unused = frozenset(f"features.{stage}.{block}.attn.relative_position_index" for stage in (1, 3) for block in (0, 1))


PAIR = Swin()
