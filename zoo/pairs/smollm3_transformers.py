"""SmolLM3, layers without places in between: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pair import LanguageModel, SameName


class Smollm3(SameName, LanguageModel):
    computed = r"\binv_freq$"
    unused = frozenset({"lm_head.weight"})
    network = "SmolLM3ForCausalLM"
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
        "no_rope_layers": [1, 0],
        "pad_token_id": 0,
    }


PAIR = Smollm3()
