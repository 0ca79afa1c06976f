"""RecurrentGemma: gated linear recurrences and local attention: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pair import CrossEntropy, LanguageModel, SameName


class RecurrentGemma(SameName, LanguageModel):
    unused = frozenset({"lm_head.weight"})
    network = "RecurrentGemmaForCausalLM"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "vocab_size": LanguageModel.vocabulary,
        "hidden_size": 32,
        "intermediate_size": 96,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "lru_width": 32,
        "attention_window_size": 8,
        "use_cache": False,
    }

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        for layer in net.model.layers:
            if hasattr(layer.temporal_block, "rg_lru"):
                layer.temporal_block.rg_lru.recurrent_states = None  # kept from the step before, with its graph
        return super().golden_loss(net, batch, cross_entropy)


PAIR = RecurrentGemma()
