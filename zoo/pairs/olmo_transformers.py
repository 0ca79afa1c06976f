"""OLMo, norms without weights: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pair import LanguageModel, SameName


class Olmo(SameName, LanguageModel):
    computed = r"\binv_freq$"
    network = "OlmoForCausalLM"
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
    }


PAIR = Olmo()
