"""OPT, learned places and ReLU: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pair import LanguageModel, SameName


class OPT(SameName, LanguageModel):
    unused = frozenset({"lm_head.weight"})
    network = "OPTForCausalLM"
    optimizer = "sgd"
    learning_rate = 0.01
    settings: ClassVar[dict[str, Any]] = {
        "vocab_size": LanguageModel.vocabulary,
        "hidden_size": 32,
        "ffn_dim": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": 32,
        "word_embed_proj_dim": 32,
        "dropout": 0.0,
        "use_cache": False,
    }


PAIR = OPT()
