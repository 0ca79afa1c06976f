"""SqueezeNet, convolutions with biases and without norms: mindcv beside torchvision."""

from typing import Any

from zoo.pair import Classifier
from zoo.pairs._mindcv import without_dropout


class SqueezeNet(Classifier):
    #: torchvision's pools keep what is left at the border, mindcv's do not: of this size nothing is left.
    size = 51
    names = ((r"^final_conv\b", "classifier.1"),)

    def golden(self) -> Any:
        from torchvision.models import squeezenet1_0

        return squeezenet1_0(num_classes=self.classes, dropout=0.0)

    def target(self) -> Any:
        from mindcv.models import squeezenet1_0

        net = squeezenet1_0(num_classes=self.classes)
        without_dropout(net)
        return net


PAIR = SqueezeNet()
