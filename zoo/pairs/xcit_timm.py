"""XCiT, attention between channels, with class attention at its end: mindcv beside timm."""

import re
from typing import Any

from zoo.pair import Classifier
from zoo.pairs._mindcv import cells, name_by_place, use_exact_gelu

SETTINGS: dict[str, Any] = {"patch_size": 8, "embed_dim": 32, "depth": 2, "num_heads": 4, "mlp_ratio": 2.0, "eta": 0.5}


class XCiT(Classifier):
    rows = 8
    optimizer = "adam"
    learning_rate = 1e-3

    def golden(self) -> Any:
        from timm.models.xcit import Xcit

        return Xcit(img_size=self.size, num_classes=self.classes, cls_attn_layers=1, tokens_norm=True, **SETTINGS)

    def target(self) -> Any:
        from mindcv.models.cait import ClassAttention
        from mindcv.models.xcit import XCA, XCiT
        from mindspore import ops

        class NormalizedXCA(XCA):
            """mindcv forgets to normalize queries and keys, which the temperature is meant for."""

            def construct(self, x: Any) -> Any:
                rows, tokens, channels = x.shape
                qkv = self.qkv(x).reshape(rows, tokens, 3, self.num_heads, channels // self.num_heads)
                query, key, value = ops.unstack(ops.transpose(qkv, (2, 0, 3, 4, 1)), axis=0)
                normalize = ops.L2Normalize(axis=-1, epsilon=1e-12)
                attention = self.q_matmul_k(normalize(query), normalize(key)) * self.temperature
                x = self.attn_matmul_v(self.attn_drop(self.softmax(attention)), value)
                return self.proj_drop(self.proj(ops.transpose(x, (0, 3, 1, 2)).reshape(rows, tokens, channels)))

        class ApartClassAttention(ClassAttention):
            """timm projects queries, keys and values apart here, mindcv's XCiT together."""

            def construct(self, x: Any) -> Any:
                return ops.concat((super().construct(x), x[:, 1:]), axis=1)

        net = XCiT(img_size=self.size, num_classes=self.classes, cls_attn_layers=1, tokens_norm=True, **SETTINGS)
        for _, attention in cells(net, "XCA"):
            attention.__class__ = NormalizedXCA
        for block in net.cls_attn_blocks:
            block.attn = ApartClassAttention(SETTINGS["embed_dim"], SETTINGS["num_heads"], qkv_bias=True)
        use_exact_gelu(net)
        name_by_place(net)
        return net

    def parameter(self, path: str) -> str:
        return re.sub(r"\bpos_embeder\b", "pos_embed", super().parameter(path))


PAIR = XCiT()
