"""PiT, a vision transformer that pools its tokens: mindcv, queries, keys and values apart, beside timm."""

import re
from typing import Any

import numpy as np

from zoo.pair import Classifier
from zoo.pairs._mindcv import use_exact_gelu

SETTINGS: dict[str, Any] = {
    "patch_size": 8,
    "stride": 4,
    "base_dims": [8, 8, 8],
    "depth": [1, 1, 1],
    "heads": [2, 4, 8],
    "mlp_ratio": 2.0,
}


class PiT(Classifier):
    optimizer = "adam"
    learning_rate = 1e-3
    names = ((r"\battn\.[qkv]\.", "attn.qkv."),)

    def golden(self) -> Any:
        from timm.models.pit import PoolingVisionTransformer

        return PoolingVisionTransformer(img_size=self.size, num_classes=self.classes, **SETTINGS)

    def target(self) -> Any:
        from mindcv.models.pit import PoolingTransformer

        net = PoolingTransformer(image_size=self.size, num_classes=self.classes, **SETTINGS)
        use_exact_gelu(net)
        return net

    def parameter(self, path: str) -> str:
        # mindcv pools behind a stage, timm in front of the next.
        path = re.sub(r"^pools\.(\d)", lambda found: f"transformers.{int(found[1]) + 1}.pool", path)
        return super().parameter(path)

    def value(self, path: str, golden: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        if found := re.search(r"\battn\.([qkv])\.", path):
            golden = np.split(golden, 3)["qkv".index(found[1])]
        return super().value(path, golden, shape)


PAIR = PiT()
