"""Switch transformers: each word through one of several experts: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pairs.mt5_transformers import Mt5


class Switch(Mt5):
    unused = Mt5.unused | {"lm_head.weight"}
    network = "SwitchTransformersForConditionalGeneration"
    settings: ClassVar[dict[str, Any]] = {
        **Mt5.settings,
        "num_experts": 4,
        "num_sparse_encoder_layers": 1,
        "num_sparse_decoder_layers": 1,
        "router_jitter_noise": 0.0,
        "expert_capacity": 64,
    }


PAIR = Switch()
