"""MLP-Mixer: mindcv, out of containers, beside timm."""

from typing import Any

from zoo.pair import Classifier
from zoo.pairs._mindcv import use_exact_gelu, use_layer_norm_epsilon


class MlpMixer(Classifier):
    optimizer = "adam"
    learning_rate = 1e-3
    names = (
        (r"^to_patch_embedding\.0\b", "stem.proj"),
        (r"^mixer_blocks\b", "blocks"),
        (r"\btoken_mix\.0\b", "norm1"),
        (r"\btoken_mix\.2\.net\.0\b", "mlp_tokens.fc1"),
        (r"\btoken_mix\.2\.net\.3\b", "mlp_tokens.fc2"),
        (r"\bchannel_mix\.0\b", "norm2"),
        (r"\bchannel_mix\.1\.net\.0\b", "mlp_channels.fc1"),
        (r"\bchannel_mix\.1\.net\.3\b", "mlp_channels.fc2"),
        (r"^layer_norm\b", "norm"),
        (r"^mlp_head\b", "head"),
    )

    def golden(self) -> Any:
        from timm.models import MlpMixer

        return MlpMixer(
            img_size=self.size,
            patch_size=8,
            num_blocks=3,
            embed_dim=32,
            mlp_ratio=(0.5, 2.0),
            num_classes=self.classes,
        )

    def target(self) -> Any:
        from mindcv.models.mlpmixer import MLPMixer
        from mindspore import nn

        net = MLPMixer(3, 8, 16, 32, 16, 64, num_classes=self.classes)
        # mindcv leaves out the bias of the patches' projection; MindSpore's convolutions have none unless asked.
        net.to_patch_embedding[0] = nn.Conv2d(3, 32, 8, 8, pad_mode="pad", padding=0, has_bias=True)
        use_exact_gelu(net)
        use_layer_norm_epsilon(net, 1e-6)
        return net


PAIR = MlpMixer()
