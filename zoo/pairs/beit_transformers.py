"""BEiT: relative position bias in each layer, scaled residuals: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pairs.pvt_transformers import Pvt


class Beit(Pvt):
    size = 32
    network = "BeitForImageClassification"
    settings: ClassVar[dict[str, Any]] = {
        "image_size": 32,
        "patch_size": 8,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "drop_path_rate": 0.0,
        "use_relative_position_bias": True,
        "layer_scale_init_value": 0.1,
        "num_labels": 10,
    }


PAIR = Beit()
