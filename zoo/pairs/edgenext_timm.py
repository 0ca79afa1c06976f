"""EdgeNeXt, convolutions and attention between channels: mindcv beside timm."""

import re
from typing import Any

from zoo.pair import Classifier
from zoo.pairs._mindcv import name_by_place

DEPTHS, WIDTHS = (1, 1, 2, 1), (16, 24, 32, 48)


class EdgeNeXt(Classifier):
    size = 64
    optimizer = "adam"
    learning_rate = 1e-3
    names = (
        (r"^downsample_layers\.0\b", "stem"),
        (r"^downsample_layers\.(\d)", r"stages.\1.downsample"),
        (r"^stages\.(\d)\.(\d)\.", r"stages.\1.blocks.\2."),
        (r"\bdwconv\b", "conv_dw"),
        (r"\bpwconv(\d)\b", r"mlp.fc\1"),
        (r"^norm\b", "head.norm"),
        (r"^head\.(weight|bias)$", r"head.fc.\1"),
    )

    def golden(self) -> Any:
        from timm.models import EdgeNeXt

        return EdgeNeXt(
            dims=WIDTHS,
            depths=DEPTHS,
            global_block_counts=(0, 1, 1, 1),
            heads=(4, 4, 4, 4),
            num_classes=self.classes,
            ls_init_value=0.5,
        )

    def target(self) -> Any:
        from mindcv.models.edgenext import EdgeNeXt

        net = EdgeNeXt(
            dims=list(WIDTHS),
            depths=list(DEPTHS),
            global_block=[0, 1, 1, 1],
            global_block_type=["None", "SDTA", "SDTA", "SDTA"],
            use_pos_embd_xca=[False, True, False, False],
            kernel_sizes=[3, 5, 7, 9],
            heads=[4, 4, 4, 4],
            d2_scales=[2, 2, 3, 4],
            num_classes=self.classes,
            layer_scale_init_value=0.5,
        )
        name_by_place(net)
        return net

    def parameter(self, path: str) -> str:
        return re.sub(r"\b(blocks\.\d)\.(gamma1|weight)$", r"\1.gamma", super().parameter(path))


PAIR = EdgeNeXt()
