"""Granite, with multipliers of its own: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pair import LanguageModel, SameName


class Granite(SameName, LanguageModel):
    computed = r"\binv_freq$"
    network = "GraniteForCausalLM"
    optimizer = "sgd"
    learning_rate = 0.01
    settings: ClassVar[dict[str, Any]] = {
        "vocab_size": LanguageModel.vocabulary,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "embedding_multiplier": 12.0,
        "residual_multiplier": 0.22,
        "attention_multiplier": 0.125,
        "logits_scaling": 8.0,
        "use_cache": False,
    }


PAIR = Granite()
