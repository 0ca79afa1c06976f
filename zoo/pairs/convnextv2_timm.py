"""ConvNeXt V2 with global response normalization: mindcv beside timm."""

import re
from typing import Any

from zoo.pair import Classifier
from zoo.pairs._mindcv import use_exact_gelu

DEPTHS, WIDTHS = (1, 1, 2, 1), (16, 24, 32, 48)


class ConvNeXtV2(Classifier):
    size = 64
    names = (
        (r"\bdwconv\b", "conv_dw"),
        (r"\bpwconv(\d)\b", r"mlp.fc\1"),
        (r"\bgrn\b", "mlp.grn"),
        (r"^norm\b", "head.norm"),
        (r"^classifier\b", "head.fc"),
    )

    def golden(self) -> Any:
        from timm.models import ConvNeXt

        return ConvNeXt(depths=DEPTHS, dims=WIDTHS, num_classes=self.classes, use_grn=True, ls_init_value=None)

    def target(self) -> Any:
        from mindcv.models.convnext import ConvNeXt

        net = ConvNeXt(3, self.classes, list(DEPTHS), list(WIDTHS), use_grn=True, layer_scale_init_value=0.0)
        use_exact_gelu(net)
        return net

    def parameter(self, path: str) -> str:
        if found := re.fullmatch(r"feature\.(\d)\.(.+)", path):
            stage, rest = divmod(int(found[1]), 2), found[2]
            place = "blocks" if stage[1] else "downsample"
            path = f"stem.{rest}" if found[1] == "0" else f"stages.{stage[0]}.{place}.{rest}"
        return super().parameter(path)


PAIR = ConvNeXtV2()
