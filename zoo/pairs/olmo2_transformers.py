"""OLMo 2, norms behind attention and MLP: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pair import LanguageModel, SameName


class Olmo2(SameName, LanguageModel):
    computed = r"\binv_freq$"
    network = "Olmo2ForCausalLM"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "vocab_size": LanguageModel.vocabulary,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "use_cache": False,
    }


PAIR = Olmo2()
