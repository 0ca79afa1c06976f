"""An EfficientNet V2 of fused and separable blocks: mindcv beside torchvision."""

import re
from typing import Any

from zoo.pair import Classifier
from zoo.pairs._mindcv import cells, group_of, pad_both_sides

#: Of each stage: fused, widening, kernel, stride, width before and after, blocks.
STAGES = (
    (True, 1, 3, 1, 16, 16, 1),
    (True, 4, 3, 2, 16, 24, 2),
    (False, 1, 3, 2, 24, 32, 1),
    (False, 4, 5, 1, 32, 32, 2),
)


class EfficientNet(Classifier):
    size = 48
    names = ((r"^mlp_head\b", "classifier.1"),)

    def golden(self) -> Any:
        from torchvision.models.efficientnet import EfficientNet, FusedMBConvConfig, MBConvConfig

        stages = [(FusedMBConvConfig if fused else MBConvConfig)(*rest) for fused, *rest in STAGES]
        return EfficientNet(stages, dropout=0.0, stochastic_depth_prob=0.0, num_classes=self.classes)

    def target(self) -> Any:
        from mindcv.models.efficientnet import EfficientNet, FusedMBConvConfig, MBConvConfig

        stages = [(FusedMBConvConfig if fused else MBConvConfig)(*rest) for fused, *rest in STAGES]
        net = EfficientNet(
            "efficientnet_v2",
            dropout_rate=0.0,
            drop_path_prob=0.0,
            num_classes=self.classes,
            inverted_residual_setting=stages,
        )
        for _, convolution in cells(net, "Conv2d"):
            if convolution.stride != (1, 1):
                pad_both_sides(convolution)
        return net

    def parameter(self, path: str) -> str:
        path = super().parameter(path)
        if not path.startswith("features"):
            return path
        number, rest = re.fullmatch(r"features\.(\d+)\.(.+)", path).groups()  # type: ignore[union-attr]
        layer, inside = group_of(int(number), [3, *[1] * len(STAGES), 3])
        if layer in (0, len(STAGES) + 1):
            return f"features.{layer}.{inside}.{rest}"
        fused, widening, *_ = STAGES[layer - 1]
        sizes = [3, 2] if fused else [3, 1, 2]
        sizes = sizes if fused or widening == 1 else [3, *sizes]
        block, place, name = re.fullmatch(r"(\d)\.block\.(\d+)\.(.+)", rest).groups()  # type: ignore[union-attr]
        group, inside = group_of(int(place), sizes)
        name = name.replace("conv_reduce", "fc1").replace("conv_expand", "fc2")
        name = name if name.startswith("fc") else f"{inside}.{name}"
        return f"features.{layer}.{block}.block.{group}.{name}"


PAIR = EfficientNet()
