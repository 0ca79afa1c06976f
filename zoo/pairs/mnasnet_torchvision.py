"""MnasNet, depthwise convolutions of several sizes: mindcv beside torchvision."""

import re
from typing import Any

from zoo.pair import Classifier
from zoo.pairs._mindcv import group_of, use_batch_norm, without_dropout


class MnasNet(Classifier):
    size = 64

    def golden(self) -> Any:
        from torchvision.models import mnasnet0_5

        return mnasnet0_5(num_classes=self.classes, dropout=0.0)

    def target(self) -> Any:
        from mindcv.models.mnasnet import Mnasnet

        net = Mnasnet(alpha=0.5, num_classes=self.classes, drop_rate=0.0)
        use_batch_norm(net, 1e-5, 1 - 0.9997)
        without_dropout(net)
        return net

    def parameter(self, path: str) -> str:
        if found := re.fullmatch(r"features\.(\d+)\.(.+)", path):
            place = int(found[1])
            if 8 <= place < 24:
                group, inside = group_of(place - 8, (3, 3, 3, 2, 4, 1))
                path = f"layers.{8 + group}.{inside}.{found[2]}"
            else:
                path = f"layers.{place if place < 8 else place - 10}.{found[2]}"
        return super().parameter(re.sub(r"^classifier\b", "classifier.1", path))


PAIR = MnasNet()
