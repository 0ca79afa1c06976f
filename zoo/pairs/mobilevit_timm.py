"""MobileViT, transformers over unfolded patches between convolutions: mindcv beside timm."""

import re
from typing import Any

from zoo.pair import Classifier
from zoo.pairs._mindcv import cells, name_by_place, use_layer_norm_epsilon

TRANSFORMERS = ((24, 32, 2), (32, 48, 1))


class MobileViT(Classifier):
    size = 64
    rows = 2
    names = (
        (r"^conv_1\.", "stem."),
        (r"^conv_1x1_exp\.", "final_conv."),
        (r"^classifier\.\d\b", "head.fc"),
        (r"\.block\.0\.", ".conv1_1x1."),
        (r"\.block\.1\.", ".conv2_kxk."),
        (r"\.block\.2\.", ".conv3_1x1."),
        (r"\blocal_rep\.0\b", "conv_kxk"),
        (r"\blocal_rep\.1\b", "conv_1x1"),
        (r"\bfusion\b", "conv_fusion"),
        (r"\bpre_norm_mha\.0\b", "norm1"),
        (r"\bpre_norm_mha\.1\.qkv_proj\b", "attn.qkv"),
        (r"\bpre_norm_mha\.1\.out_proj\b", "attn.proj"),
        (r"\bpre_norm_ffn\.0\b", "norm2"),
        (r"\bpre_norm_ffn\.1\b", "mlp.fc1"),
        (r"\bpre_norm_ffn\.4\b", "mlp.fc2"),
        (r"\bfeatures\.0\b", "conv"),
        (r"\bfeatures\.1\b", "bn"),
    )

    def golden(self) -> Any:
        from timm.models.byobnet import ByobNet, ByoModelCfg
        from timm.models.mobilevit import _inverted_residual_block, _mobilevit_block

        settings = ByoModelCfg(
            blocks=(
                _inverted_residual_block(d=1, c=16, s=2, br=2.0),
                _inverted_residual_block(d=2, c=16, s=1, br=2.0),
                *(
                    _mobilevit_block(d=1, c=c, s=2, transformer_dim=w, transformer_depth=d, patch_size=2, br=2.0)
                    for c, w, d in TRANSFORMERS
                ),
            ),
            stem_chs=16,
            stem_type="3x3",
            stem_pool="",
            downsample="",
            act_layer="silu",
            num_features=64,
        )
        return ByobNet(settings, num_classes=self.classes)

    def target(self) -> Any:
        from mindcv.models.mobilevit import MobileViT
        from mindspore import nn

        mobile = {"block_type": "mv2", "expand_ratio": 2}
        first, second = (
            {
                "out_channels": channels,
                "transformer_channels": width,
                "ffn_dim": 2 * width,
                "transformer_blocks": depth,
                "stride": 2,
                "mv_expand_ratio": 2,
                "dropout": 0.0,
                "attn_dropout": 0.0,
            }
            for channels, width, depth in TRANSFORMERS
        )
        settings = {
            "layer1": {"out_channels": 16, "num_blocks": 1, "stride": 2, **mobile},
            "layer2": {"out_channels": 16, "num_blocks": 1, "stride": 1, **mobile},
            "layer3": {"out_channels": 16, "num_blocks": 1, "stride": 1, **mobile},
            "layer4": first,
            "layer5": second,
            "last_layer_exp_factor": 2,
            "cls_dropout": 0.0,
        }
        net = MobileViT(settings, self.classes)
        # mindcv normalizes and activates what goes into the transformer; the paper projects it alone.
        for _, block in cells(net, "MobileViTBlock"):
            block.local_rep[1] = nn.Conv2d(block.cnn_in_dim, block.cnn_out_dim, 1)
        use_layer_norm_epsilon(net, 1e-5)
        name_by_place(net)
        return net

    def parameter(self, path: str) -> str:
        # Our third layer continues the second stage of timm.
        path = re.sub(r"^layer_3\.0\b", "stages.1.1", path)
        path = re.sub(r"^layer_([12])\b", lambda found: f"stages.{int(found[1]) - 1}", path)
        path = re.sub(r"^layer_([45])\b", lambda found: f"stages.{int(found[1]) - 2}", path)
        for stage, (*_, depth) in enumerate(TRANSFORMERS, 2):
            path = re.sub(rf"^(stages\.{stage}\.1)\.global_rep\.{depth}\b", r"\1.norm", path)
        return super().parameter(re.sub(r"\bglobal_rep\b", "transformer", path))


PAIR = MobileViT()
