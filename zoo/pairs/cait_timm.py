"""CaiT, talking heads and attention of a class token: mindcv beside timm."""

from functools import partial
from typing import Any

from zoo.pair import Classifier
from zoo.pairs._mindcv import cells, name_by_place, use_exact_gelu

SETTINGS: dict[str, Any] = {
    "patch_size": 8,
    "embed_dim": 32,
    "depth": 2,
    "num_heads": 4,
    "mlp_ratio": 2.0,
    "init_values": 0.5,
}


class CaiT(Classifier):
    optimizer = "adam"
    learning_rate = 1e-3

    def golden(self) -> Any:
        from timm.models import Cait

        return Cait(
            img_size=self.size,
            num_classes=self.classes,
            depth_token_only=2,
            mlp_ratio_token_only=2.0,
            **SETTINGS,
        )

    def target(self) -> Any:
        from mindcv.models.cait import CaiT
        from mindspore import nn

        net = CaiT(
            img_size=self.size,
            num_classes=self.classes,
            depth_token_only=2,
            qkv_bias=True,
            norm_layer=partial(nn.LayerNorm, epsilon=1e-6),
            **SETTINGS,
        )
        # mindcv leaves out the biases of the three projections around talking heads.
        for _, attention in cells(net, "AttentionTalkingHead"):
            width, heads = SETTINGS["embed_dim"], SETTINGS["num_heads"]
            attention.proj = nn.Dense(width, width)
            attention.proj_l, attention.proj_w = nn.Dense(heads, heads), nn.Dense(heads, heads)
        use_exact_gelu(net)
        name_by_place(net)
        return net


PAIR = CaiT()
