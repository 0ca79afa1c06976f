"""Gemma 2: soft caps, four norms a layer, sliding windows: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pair import LanguageModel, SameName


class Gemma2(SameName, LanguageModel):
    unused = frozenset({"lm_head.weight"})
    network = "Gemma2ForCausalLM"
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
        "head_dim": 16,
        "sliding_window": 8,
        "query_pre_attn_scalar": 16,
    }


PAIR = Gemma2()
