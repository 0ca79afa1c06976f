"""Cohere, attention beside the MLP, scaled logits: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pair import LanguageModel, SameName


class Cohere(SameName, LanguageModel):
    computed = r"\binv_freq$"
    unused = frozenset({"lm_head.weight"})
    network = "CohereForCausalLM"
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
        "use_qk_norm": False,
        "pad_token_id": 0,
    }


PAIR = Cohere()
