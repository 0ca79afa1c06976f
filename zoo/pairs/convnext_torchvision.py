"""ConvNeXt: mindcv, which transposes in its code, beside torchvision, which does it by modules."""

from typing import Any

from zoo.pair import Classifier
from zoo.pairs._mindcv import use_exact_gelu

DEPTHS, WIDTHS = (1, 2, 1, 1), (16, 24, 32, 48)


class ConvNeXt(Classifier):
    size = 64
    names = (
        (r"^feature\b", "features"),
        (r"^norm\b", "classifier.0"),
        (r"^classifier\.(weight|bias)$", r"classifier.2.\1"),
        (r"\bdwconv\b", "block.0"),
        (r"(features\.\d\.\d)\.norm\b", r"\1.block.2"),
        (r"\bpwconv1\b", "block.3"),
        (r"\bpwconv2\b", "block.5"),
        (r"\bgamma_$", "layer_scale"),
    )

    def golden(self) -> Any:
        from torchvision.models.convnext import CNBlockConfig, ConvNeXt

        following = (*WIDTHS[1:], None)
        blocks = [CNBlockConfig(*each) for each in zip(WIDTHS, following, DEPTHS, strict=True)]
        return ConvNeXt(blocks, layer_scale=0.5, num_classes=self.classes)

    def target(self) -> Any:
        from mindcv.models.convnext import ConvNeXt

        net = ConvNeXt(3, self.classes, list(DEPTHS), list(WIDTHS), layer_scale_init_value=0.5)
        use_exact_gelu(net)
        return net


PAIR = ConvNeXt()
