"""XGLM, sinusoids as places: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pair import LanguageModel, SameName


class Xglm(SameName, LanguageModel):
    unused = frozenset({"lm_head.weight"})
    network = "XGLMForCausalLM"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "vocab_size": LanguageModel.vocabulary,
        "d_model": 32,
        "ffn_dim": 64,
        "num_layers": 2,
        "attention_heads": 4,
        "max_position_embeddings": 32,
        "dropout": 0.0,
        "attention_dropout": 0.0,
        "activation_dropout": 0.0,
        "layerdrop": 0.0,
        "use_cache": False,
    }


PAIR = Xglm()
