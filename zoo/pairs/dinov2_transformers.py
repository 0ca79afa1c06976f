"""DINOv2: layers scaled, a gated MLP, places resized: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pair import Classifier, CrossEntropy, SameName


class Dinov2(SameName, Classifier):
    network = "Dinov2ForImageClassification"
    optimizer = "sgd"
    learning_rate = 0.01
    settings: ClassVar[dict[str, Any]] = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "mlp_ratio": 2,
        "image_size": 32,
        "patch_size": 8,
        "use_swiglu_ffn": True,
        "layerscale_value": 0.5,
        "num_labels": 10,
    }

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        return cross_entropy(net(batch["image"])[0], batch["labels"])


PAIR = Dinov2()
