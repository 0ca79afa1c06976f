"""GPT-NeoX: places turn a part of each head, attention beside the MLP: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pair import LanguageModel, SameName


class GPTNeoX(SameName, LanguageModel):
    computed = r"\binv_freq$"
    network = "GPTNeoXForCausalLM"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "vocab_size": LanguageModel.vocabulary,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "rotary_pct": 0.5,
        "use_cache": False,
    }


PAIR = GPTNeoX()
