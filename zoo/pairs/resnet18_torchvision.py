"""ResNet-18: mindcv beside torchvision."""

from typing import Any

from zoo.pair import Classifier


class ResNet18(Classifier):
    names = ((r"\bdown_sample\b", "downsample"), (r"^classifier\b", "fc"))

    def golden(self) -> Any:
        from torchvision.models import resnet18

        return resnet18(num_classes=self.classes)

    def target(self) -> Any:
        from mindcv.models import resnet18
        from mindspore import nn

        net = resnet18(num_classes=self.classes)
        # mindcv pools with "same", which pads an even size on one side only; see docs/zoo.md.
        net.max_pool = nn.MaxPool2d(3, 2, pad_mode="pad", padding=1)
        return net


PAIR = ResNet18()
