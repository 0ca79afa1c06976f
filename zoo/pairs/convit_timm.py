"""ConViT, attention gated by positions: mindcv, queries, keys and values apart, beside timm."""

import re
from typing import Any

import numpy as np

from zoo.pair import Classifier
from zoo.pairs._mindcv import cells, use_exact_gelu, use_layer_norm_epsilon

GATED = 2


class ConViT(Classifier):
    optimizer = "adam"
    learning_rate = 1e-3
    names = (
        (rf"^blocks\.([0-{GATED - 1}])\.attn\.[qk]\.", r"blocks.\1.attn.qk."),
        (rf"^blocks\.([^0-{GATED - 1}])\.attn\.[qkv]\.", r"blocks.\1.attn.qkv."),
        (r"^classifier\b", "head"),
    )

    def golden(self) -> Any:
        from timm.models.convit import ConVit

        return ConVit(
            img_size=self.size,
            patch_size=8,
            embed_dim=8,
            depth=3,
            num_heads=4,
            mlp_ratio=2.0,
            local_up_to_layer=GATED,
            num_classes=self.classes,
        )

    def target(self) -> Any:
        from mindcv.models.convit import ConViT, get_rel_indices

        net = ConViT(
            image_size=self.size,
            patch_size=8,
            embed_dim=32,
            depth=3,
            num_heads=4,
            mlp_ratio=2.0,
            local_up_to_layer=GATED,
            drop_path_rate=0.0,
            num_classes=self.classes,
        )
        # mindcv reckons with 14 × 14 patches whatever the size of the image.
        for _, attention in cells(net, "GPSA"):
            attention.rel_indices = get_rel_indices(net.num_patches)
        use_exact_gelu(net)
        use_layer_norm_epsilon(net, 1e-6)
        return net

    def value(self, path: str, golden: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        if found := re.search(r"\battn\.([qkv])\.", path):
            parts = len(golden) // shape[0]
            golden = np.split(golden, parts)["qkv".index(found[1]) if parts > 1 else 0]
        return super().value(path, golden, shape)


PAIR = ConViT()
