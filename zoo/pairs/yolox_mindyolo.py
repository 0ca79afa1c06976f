"""A YOLOX detector, pyramid and decoupled heads included: mindyolo, out of a list of layers, beside Megvii's."""

import re
import sys
from types import ModuleType
from typing import Any

import numpy as np

from zoo.pair import Batch, CrossEntropy, Pair

DEPTH, WIDTH, STRIDES = 0.33, 0.125, (8, 16, 32)
#: From which layer, how often, what and of which settings, as mindyolo's configuration of YOLOX has it.
BACKBONE = (
    (-1, 1, "Focus", (64, 3)),
    (-1, 1, "ConvNormAct", (128, 3, 2)),
    (-1, 3, "C3", (128,)),
    (-1, 1, "ConvNormAct", (256, 3, 2)),
    (-1, 9, "C3", (256,)),
    (-1, 1, "ConvNormAct", (512, 3, 2)),
    (-1, 9, "C3", (512,)),
    (-1, 1, "ConvNormAct", (1024, 3, 2)),
    (-1, 1, "SPPF", (1024, 5)),
    (-1, 3, "C3", (1024, False)),
)
HEAD = (
    (-1, 1, "ConvNormAct", (512, 1, 1)),
    (-1, 1, "Upsample", (None, 2)),
    ((-1, 6), 1, "Concat", (1,)),
    (-1, 3, "C3", (512, False)),
    (-1, 1, "ConvNormAct", (256, 1, 1)),
    (-1, 1, "Upsample", (None, 2)),
    ((-1, 4), 1, "Concat", (1,)),
    (-1, 3, "C3", (256, False)),
    (-1, 1, "ConvNormAct", (256, 3, 2)),
    ((-1, 14), 1, "Concat", (1,)),
    (-1, 3, "C3", (512, False)),
    (-1, 1, "ConvNormAct", (512, 3, 2)),
    ((-1, 10), 1, "Concat", (1,)),
    (-1, 3, "C3", (1024, False)),
    ((17, 20, 23), 1, "YOLOXHead", ("nc", "stride")),
)
#: Where Megvii keeps the layer of that number.
PLACES = {
    0: "backbone.backbone.stem",
    1: "backbone.backbone.dark2.0",
    2: "backbone.backbone.dark2.1",
    3: "backbone.backbone.dark3.0",
    4: "backbone.backbone.dark3.1",
    5: "backbone.backbone.dark4.0",
    6: "backbone.backbone.dark4.1",
    7: "backbone.backbone.dark5.0",
    8: "backbone.backbone.dark5.1",
    9: "backbone.backbone.dark5.2",
    10: "backbone.lateral_conv0",
    13: "backbone.C3_p4",
    14: "backbone.reduce_conv1",
    17: "backbone.C3_p3",
    18: "backbone.bu_conv2",
    20: "backbone.C3_n3",
    21: "backbone.bu_conv1",
    23: "backbone.C3_n4",
    24: "head",
}


class YOLOX(Pair):
    size, classes, rows = 64, 6, 4
    learning_rate = 0.01

    def golden(self) -> Any:
        from torch import nn
        from yolox.models import YOLOPAFPN, YOLOX, YOLOXHead

        class Detector(YOLOX):
            """Gives its predictions in training, too."""

            def forward(self, x: Any) -> Any:
                return self.head(self.backbone(x))

        class Head(YOLOXHead):
            def get_losses(
                self, imgs: Any, x: Any, y: Any, strides: Any, labels: Any, outputs: Any, *_: Any, **__: Any
            ) -> Any:
                return outputs

        net = Detector(YOLOPAFPN(DEPTH, WIDTH), Head(self.classes, WIDTH))
        for module in net.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.eps, module.momentum = 1e-3, 0.03
        return net

    def target(self) -> Any:
        # mindyolo reads data by a module that setuptools has no more.
        sys.modules.setdefault("pkg_resources", ModuleType("pkg_resources"))
        from mindyolo.models.yolox import YOLOX
        from mindyolo.utils.config import Config

        def listed(layers: Any) -> list[Any]:
            return [
                [list(source) if isinstance(source, tuple) else source, count, kind, list(settings)]
                for source, count, kind, settings in layers
            ]

        settings = {
            "stride": list(STRIDES),
            "depth_multiple": DEPTH,
            "width_multiple": WIDTH,
            "backbone": listed(BACKBONE),
            "head": listed(HEAD),
        }
        return YOLOX(Config(settings), num_classes=self.classes)

    def batch(self, generator: np.random.Generator) -> Batch:
        anchors = sum((self.size // stride) ** 2 for stride in STRIDES)
        return {
            "image": generator.standard_normal((self.rows, 3, self.size, self.size)).astype(np.float32),
            "boxes": generator.uniform(0, self.size, (self.rows, anchors, 4)).astype(np.float32),
            "labels": generator.integers(0, self.classes, (self.rows, anchors)),
        }

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        predictions = net(batch["image"])
        boxes = (((predictions[..., :4] - batch["boxes"]) / self.size) ** 2).mean()
        classes = cross_entropy(predictions[..., 5:].reshape(-1, self.classes), batch["labels"].reshape(-1))
        return boxes + classes + (predictions[..., 4] ** 2).mean()

    def parameter(self, path: str) -> str:
        number, rest = re.fullmatch(r"model\.model\.(\d+)\.(.+)", path).groups()  # type: ignore[union-attr]
        return super().parameter(f"{PLACES[int(number)]}.{rest}")


PAIR = YOLOX()
