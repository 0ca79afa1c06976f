"""Dual path networks: mindcv, the two paths of a projection apart, beside timm, which computes them as one."""

import re
from typing import Any

import numpy as np

from zoo.pair import Classifier

SETTINGS: dict[str, Any] = {"k_sec": (1, 2, 1, 1), "inc_sec": (4, 8, 8, 16), "k_r": 16}


class DPN(Classifier):
    size = 64
    names = (
        (r"\bconv1\.conv\b", "conv1_1.conv"),
        (r"\bconv1\.norm\b", "conv1_1.bn"),
        (r"\blayers\.bn1\b", "c1x1_a.bn"),
        (r"\blayers\.conv1\b", "c1x1_a.conv"),
        (r"\blayers\.bn2\b", "c3x3_b.bn"),
        (r"\blayers\.conv2\b", "c3x3_b.conv"),
        (r"\blayers\.bn3\b", "c1x1_c.bn"),
        (r"\blayers\.conv3_[rd]\b", "c1x1_c.conv"),
        (r"\b(conv2_1\.c1x1_w)_bn\b", r"\1_s1.bn"),
        (r"\b(conv2_1\.c1x1_w)_[rd]\b", r"\1_s1.conv"),
        (r"\b(c1x1_w)_bn\b", r"\1_s2.bn"),
        (r"\b(c1x1_w)_[rd]\b", r"\1_s2.conv"),
        (r"^conv5_x\.norm\b", "features.conv5_bn_ac.bn"),
    )

    def golden(self) -> Any:
        from timm.models import DPN

        return DPN(num_classes=self.classes, num_init_features=16, groups=4, fc_act_layer="relu", **SETTINGS)

    def target(self) -> Any:
        from mindcv.models import DPN
        from mindspore import nn

        net = DPN(num_classes=self.classes, num_init_channel=16, g=4, **SETTINGS)
        # mindcv pools with "same", which pads an even size on one side only.
        net.features.conv1[3] = nn.MaxPool2d(3, 2, pad_mode="pad", padding=1)
        return net

    def value(self, path: str, golden: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        if found := re.search(r"_([rd])\.weight$", path):
            golden = golden[: shape[0]] if found[1] == "r" else golden[-shape[0] :]
        return super().value(path, golden, shape)


PAIR = DPN()
