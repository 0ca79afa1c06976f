"""MixNet, convolutions of several sizes beside each other and squeeze-and-excitation: mindcv beside timm."""

import re
from typing import Any

from zoo.pair import Classifier
from zoo.pairs._mindcv import cells, group_of, without_dropout

#: Blocks of timm's stages.
STAGES = (1, 2, 4, 3, 3, 3)
#: Layers of mindcv's blocks: of the first, which does not expand, and of those without and with squeeze-and-excitation.
PLAIN = ("conv_dw", "bn1", "", "conv_pw", "bn2")
EXPANDED = ("conv_pw", "bn1", "", "conv_dw", "bn2", "", "conv_pwl", "bn3")
EXCITED = (*EXPANDED[:6], "se", *EXPANDED[6:])


class MixNet(Classifier):
    size = 64
    names = (
        (r"^stem_conv\.0\b", "conv_stem"),
        (r"^stem_conv\.1\b", "bn1"),
        (r"^head_conv\.0\b", "conv_head"),
        (r"^head_conv\.1\b", "bn2"),
        (r"\.(grouped_conv|mixed_depthwise_conv)\b", ""),
    )

    def golden(self) -> Any:
        from timm import create_model

        return create_model("mixnet_s", num_classes=self.classes)

    def target(self) -> Any:
        from mindcv.models.mixnet import MixNet
        from mindspore import nn

        net = MixNet(num_classes=self.classes)
        without_dropout(net)
        # mindcv excites by ReLU, the original by what the block activates with.
        for _, excitation in cells(net, "SqueezeExcite"):
            excitation.act = nn.SiLU()
        return net

    def parameter(self, path: str) -> str:
        if found := re.fullmatch(r"layers\.(\d+)\.convs\.(\d)\.(.+)", path):
            stage, block = group_of(int(found[1]), STAGES)
            layers = (PLAIN, EXPANDED)[stage] if stage < 2 else EXCITED
            path = f"blocks.{stage}.{block}.{layers[int(found[2])]}.{found[3]}"
        return super().parameter(path)


PAIR = MixNet()
