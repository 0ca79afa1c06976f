"""A RegNet of type Y, grouped convolutions with squeeze and excitation: mindcv beside torchvision."""

import re
from typing import Any

from zoo.pair import Classifier

DEPTHS, WIDTHS, GROUPS, STRIDES = [1, 2, 1], [16, 32, 48], [8, 8, 16], [2, 2, 2]


class RegNet(Classifier):
    size = 64
    names = (
        (r"^stem\.conv\b", "stem.0"),
        (r"^stem\.bn\b", "stem.1"),
        (r"^head\.fc\b", "fc"),
        (r"\bf\.([abc])_bn\b", r"f.\1.1"),
        (r"\bf\.([abc])\.(weight)$", r"f.\1.0.\2"),
        (r"\bse\.conv_reduce\b", "se.fc1"),
        (r"\bse\.conv_expand\b", "se.fc2"),
    )

    def golden(self) -> Any:
        from torch import nn
        from torchvision.models.regnet import BlockParams, RegNet

        blocks = BlockParams(DEPTHS, WIDTHS, GROUPS, [1.0] * 3, STRIDES, se_ratio=0.25)
        return RegNet(blocks, num_classes=self.classes, stem_width=16, norm_layer=nn.BatchNorm2d)

    def target(self) -> Any:
        from mindcv.models.regnet import AnyNet

        return AnyNet(
            DEPTHS,
            "simple_stem_in",
            16,
            "res_bottleneck_block",
            WIDTHS,
            STRIDES,
            [1.0] * 3,
            GROUPS,
            0,
            self.classes,
            0.25,
            3,
        )

    def parameter(self, path: str) -> str:
        if found := re.fullmatch(r"stages\.(\d)\.blocks\.(\d)\.(.+)", path):
            stage = int(found[1]) + 1
            rest = re.sub(r"^bn\.", "proj.1.", re.sub(r"^proj\.", "proj.0.", found[3]))
            path = f"trunk_output.block{stage}.block{stage}-{found[2]}.{rest}"
        return super().parameter(path)


PAIR = RegNet()
