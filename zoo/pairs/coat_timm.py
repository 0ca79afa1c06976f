"""CoaT with parallel scales and shared position encodings: mindcv, queries, keys and values apart, beside timm."""

import re
from functools import partial
from typing import Any

import numpy as np

from zoo.pair import Classifier
from zoo.pairs._mindcv import cells

SETTINGS: dict[str, Any] = {
    "patch_size": 4,
    "embed_dims": (24, 24, 24, 24),
    "serial_depths": (1, 1, 1, 1),
    "parallel_depth": 1,
    "num_heads": 8,
    "mlp_ratios": (2, 2, 2, 2),
}
#: Encodings and the layers after parallel attention are shared; PyTorch names them again in each of their places.
_CONVOLUTIONS = [f"crpe.conv_list.{window}" for window in range(3)]
_SHARED = [
    *(f"serial_blocks{scale}.0.cpe.proj" for scale in range(1, 5)),
    *(f"serial_blocks{scale}.0.factoratt_crpe.{each}" for scale in range(1, 5) for each in _CONVOLUTIONS),
    *(f"parallel_blocks.0.factoratt_crpe{scale}.{each}" for scale in range(2, 5) for each in _CONVOLUTIONS),
    *(f"parallel_blocks.0.mlp{scale}.fc{layer}" for scale in (3, 4) for layer in (1, 2)),
]


class CoaT(Classifier):
    size = 64
    rows = 2
    optimizer = "adam"
    learning_rate = 1e-3
    unused = frozenset(f"{layer}.{name}" for layer in _SHARED for name in ("weight", "bias"))

    def golden(self) -> Any:
        from timm.models import CoaT
        from torch import nn

        norm = partial(nn.LayerNorm, eps=1e-6)
        return CoaT(img_size=self.size, num_classes=self.classes, norm_layer=norm, **SETTINGS)

    def target(self) -> Any:
        from mindcv.models.coat import CoaT, SerialBlock

        class PositionedBlock(SerialBlock):
            """mindcv adds the attention to what came in, not to that with its position encoded."""

            def construct(self, x: Any, size: tuple[int, int]) -> Any:
                x = self.cpe(x, size)
                x = x + self.drop_path(self.factoratt_crpe(self.norm1(x), size))
                return x + self.drop_path(self.mlp(self.norm2(x)))

        net = CoaT(image_size=self.size, num_classes=self.classes, **SETTINGS)
        for _, block in cells(net, "SerialBlock"):
            block.__class__ = PositionedBlock
        # mindcv aligns the corners when it changes the scale of tokens.
        for _, resize in cells(net, "Interpolate"):
            resize.kwargs["align_corners"] = False
        return net

    def parameter(self, path: str) -> str:
        return re.sub(r"\b(factoratt_crpe\d?)\.[qkv]\.", r"\1.qkv.", super().parameter(path))

    def value(self, path: str, golden: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        if found := re.search(r"\bfactoratt_crpe\d?\.([qkv])\.", path):
            golden = np.split(golden, 3)["qkv".index(found[1])]
        return super().value(path, golden, shape)


PAIR = CoaT()
