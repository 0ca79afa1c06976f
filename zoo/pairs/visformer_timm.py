"""Visformer, attention and grouped convolutions on maps normalized by batch: mindcv beside timm."""

from typing import Any

from zoo.pair import Classifier
from zoo.pairs._mindcv import use_exact_gelu


class Visformer(Classifier):
    size = 64

    def golden(self) -> Any:
        from timm.models import Visformer
        from torch import nn

        return Visformer(
            img_size=self.size,
            num_classes=self.classes,
            init_channels=16,
            embed_dim=32,
            depth=(1, 1, 1),
            num_heads=4,
            mlp_ratio=2.0,
            group=8,
            attn_stage="011",
            spatial_conv="100",
            norm_layer=nn.BatchNorm2d,
            embed_norm=nn.BatchNorm2d,
            conv_init=True,
        )

    def target(self) -> Any:
        from mindcv.models.visformer import Visformer

        net = Visformer(
            img_size=self.size,
            num_classes=self.classes,
            init_channels=16,
            embed_dim=32,
            depth=[0, 1, 1, 1],
            num_heads=[4, 4, 4, 4],
            mlp_ratio=2.0,
            group=8,
            attn_stage="0011",
            spatial_conv="1100",
            drop_path_rate=0.0,
        )
        use_exact_gelu(net)
        return net


PAIR = Visformer()
