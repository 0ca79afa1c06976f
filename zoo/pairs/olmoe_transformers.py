"""OLMoE, eight experts, queries and keys normalised: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pair import LanguageModel, SameName


class Olmoe(SameName, LanguageModel):
    computed = r"\binv_freq$"
    network = "OlmoeForCausalLM"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "vocab_size": LanguageModel.vocabulary,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "use_cache": False,
        "num_experts": 4,
        "num_experts_per_tok": 2,
    }


PAIR = Olmoe()
