"""A vision transformer: mindone's, with queries, keys and values apart, beside timm's, which joins them."""

from typing import Any

from zoo.pair import Classifier, CrossEntropy


class ViTBesideTimm(Classifier):
    joined = ("query", "key", "value")
    width = 32
    names = (
        (r"^vit\.embeddings\.cls_token$", "cls_token"),
        (r"^vit\.embeddings\.position_embeddings$", "pos_embed"),
        (r"^vit\.embeddings\.patch_embeddings\.projection", "patch_embed.proj"),
        (r"^vit\.encoder\.layer\.(\d+)", r"blocks.\1"),
        (r"attention\.attention\.(query|key|value)\b", "attn.qkv"),
        (r"attention\.output\.dense", "attn.proj"),
        (r"intermediate\.dense", "mlp.fc1"),
        (r"output\.dense", "mlp.fc2"),
        (r"layernorm_before", "norm1"),
        (r"layernorm_after", "norm2"),
        (r"^vit\.layernorm", "norm"),
        (r"^classifier", "head"),
    )

    def golden(self) -> Any:
        from timm.models.vision_transformer import VisionTransformer

        return VisionTransformer(
            img_size=self.size,
            patch_size=8,
            num_classes=self.classes,
            embed_dim=self.width,
            depth=2,
            num_heads=4,
            mlp_ratio=2,
        )

    def target(self) -> Any:
        from mindone.transformers import ViTForImageClassification
        from transformers import ViTConfig

        config = ViTConfig(
            image_size=self.size,
            patch_size=8,
            hidden_size=self.width,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=2 * self.width,
            layer_norm_eps=1e-6,
            num_labels=self.classes,
            attn_implementation="eager",
        )
        return ViTForImageClassification(config)

    def target_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        return cross_entropy(net(batch["image"])[0], batch["labels"])


PAIR = ViTBesideTimm()
