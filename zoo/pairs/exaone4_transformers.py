"""EXAONE 4, norms behind attention, global and local layers: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pair import LanguageModel, SameName


class Exaone4(SameName, LanguageModel):
    computed = r"\binv_freq$"
    network = "Exaone4ForCausalLM"
    optimizer = "sgd"
    learning_rate = 0.01
    settings: ClassVar[dict[str, Any]] = {
        "vocab_size": LanguageModel.vocabulary,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "use_cache": False,
        "sliding_window": 8,
        "sliding_window_pattern": 2,
        "pad_token_id": 0,
    }


PAIR = Exaone4()
