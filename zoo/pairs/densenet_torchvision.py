"""A DenseNet of seven dense layers: mindcv beside torchvision."""

import re
from typing import Any

from zoo.pair import Classifier

SETTINGS = {"growth_rate": 8, "block_config": (2, 3, 2), "num_init_features": 16, "bn_size": 2}


class DenseNet(Classifier):
    size = 64
    names = ((r"(transition\d)\.features\b", r"\1"),)

    def golden(self) -> Any:
        from torchvision.models import DenseNet

        return DenseNet(**SETTINGS, num_classes=self.classes)

    def target(self) -> Any:
        from mindcv.models.densenet import DenseNet

        return DenseNet(**SETTINGS, num_classes=self.classes)

    def parameter(self, path: str) -> str:
        path = re.sub(r"cell_list\.(\d+)", lambda found: f"denselayer{int(found[1]) + 1}", path)
        return super().parameter(path)


PAIR = DenseNet()
