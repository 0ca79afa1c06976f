"""SKNet, kernels chosen by attention: mindcv beside timm."""

from typing import Any

from zoo.pair import Classifier


class SKNet(Classifier):
    size = 64
    names = (
        (r"\bfeatures\.0\b", "conv"),
        (r"\bfeatures\.1\b", "bn"),
        (r"\bconv2\.0\b", "conv2.conv"),
        (r"\bconv2\.1\b", "conv2.bn"),
        (r"\bdown_sample\b", "downsample"),
        (r"^classifier\b", "fc"),
    )

    def golden(self) -> Any:
        from timm import create_model

        return create_model("skresnet18", num_classes=self.classes)

    def target(self) -> Any:
        from mindcv.models import skresnet18
        from mindspore import nn

        net = skresnet18(num_classes=self.classes)
        # mindcv pools with "same", which pads an even size on one side only.
        net.max_pool = nn.MaxPool2d(3, 2, pad_mode="pad", padding=1)
        return net


PAIR = SKNet()
