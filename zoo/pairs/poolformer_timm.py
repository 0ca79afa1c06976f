"""PoolFormer: mindcv beside timm's MetaFormer with pooling for attention."""

import re
from typing import Any

from zoo.pair import Classifier

DEPTHS, WIDTHS = (1, 2, 1, 1), (16, 24, 32, 48)


class PoolFormer(Classifier):
    size = 64
    names = (
        (r"^patch_embed\.proj\b", "stem.conv"),
        (r"\blayer_scale_(\d)$", r"layer_scale\1.scale"),
        (r"^norm\b", "head.norm"),
        (r"^head\.(weight|bias)$", r"head.fc.\1"),
    )

    def golden(self) -> Any:
        from timm.models.metaformer import GroupNorm1, MetaFormer
        from torch import nn

        return MetaFormer(
            depths=DEPTHS,
            dims=WIDTHS,
            num_classes=self.classes,
            downsample_norm=None,
            mlp_act=nn.GELU,
            mlp_bias=True,
            norm_layers=GroupNorm1,
            output_norm=GroupNorm1,
            layer_scale_init_values=0.5,
            res_scale_init_values=None,
            use_mlp_head=False,
        )

    def target(self) -> Any:
        from mindcv.models.poolformer import PoolFormer

        class PoolsBeforeNorm(PoolFormer):
            """timm pools before the last norm, mindcv after it."""

            def construct(self, x: Any) -> Any:
                x = self.network(self.patch_embed(x))
                return self.head(self.norm(x.mean((2, 3), keep_dims=True)).reshape(x.shape[:2]))

        return PoolsBeforeNorm(DEPTHS, WIDTHS, num_classes=self.classes, layer_scale_init_value=0.5)

    def parameter(self, path: str) -> str:
        if found := re.fullmatch(r"network\.(\d)\.(.+)", path):
            stage, between = divmod(int(found[1]), 2)
            path = f"stages.{stage + 1}.downsample." if between else f"stages.{stage}.blocks."
            path += re.sub(r"^proj\b", "conv", found[2]) if between else found[2]
        return super().parameter(path)


PAIR = PoolFormer()
