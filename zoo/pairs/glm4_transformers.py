"""GLM-4: interleaved rotary halves of a head, a fused gate: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pair import LanguageModel, SameName


class Glm4(SameName, LanguageModel):
    computed = r"\binv_freq$"
    network = "Glm4ForCausalLM"
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
        "pad_token_id": None,
    }


PAIR = Glm4()
