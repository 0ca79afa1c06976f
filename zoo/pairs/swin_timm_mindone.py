"""Swin, attention in shifted windows: mindone's, with queries, keys and values apart, beside timm's."""

from typing import Any

from zoo.pair import Classifier, CrossEntropy


class SwinBesideTimm(Classifier):
    joined = ("query", "key", "value")
    optimizer = "adam"
    learning_rate = 1e-3
    names = (
        (r"^swin\.embeddings\.patch_embeddings\.projection", "patch_embed.proj"),
        (r"^swin\.embeddings\.norm", "patch_embed.norm"),
        (r"^swin\.encoder\.layers", "layers"),
        (r"attention\.self\.relative", "attn.relative"),
        (r"attention\.self\.(query|key|value)\b", "attn.qkv"),
        (r"attention\.output\.dense", "attn.proj"),
        (r"intermediate\.dense", "mlp.fc1"),
        (r"output\.dense", "mlp.fc2"),
        (r"layernorm_before", "norm1"),
        (r"layernorm_after", "norm2"),
        (r"^swin\.layernorm", "norm"),
        (r"^classifier", "head.fc"),
    )

    def golden(self) -> Any:
        from timm.models.swin_transformer import SwinTransformer

        return SwinTransformer(
            img_size=self.size,
            patch_size=2,
            num_classes=self.classes,
            embed_dim=32,
            depths=(4,),
            num_heads=(2,),
            window_size=4,
            mlp_ratio=2,
            drop_path_rate=0.0,
        )

    def target(self) -> Any:
        from mindone.transformers import SwinForImageClassification
        from transformers import SwinConfig

        config = SwinConfig(
            image_size=self.size,
            patch_size=2,
            num_labels=self.classes,
            embed_dim=32,
            depths=[4],
            num_heads=[2],
            window_size=4,
            mlp_ratio=2,
            drop_path_rate=0.0,
            attn_implementation="eager",
        )
        return SwinForImageClassification(config)

    def target_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        return cross_entropy(net(batch["image"])[0], batch["labels"])


PAIR = SwinBesideTimm()
