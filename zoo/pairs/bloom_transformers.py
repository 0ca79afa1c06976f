"""BLOOM, with ALiBi: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pair import LanguageModel, SameName


class Bloom(SameName, LanguageModel):
    unused = frozenset({"lm_head.weight"})
    network = "BloomForCausalLM"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "vocab_size": LanguageModel.vocabulary,
        "hidden_size": 32,
        "n_layer": 2,
        "n_head": 4,
        "use_cache": False,
    }


PAIR = Bloom()
