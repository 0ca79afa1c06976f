"""Falcon: attention and MLP side by side, one key for all heads: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pair import CrossEntropy, LanguageModel, SameName


class Falcon(SameName, LanguageModel):
    unused = frozenset({"lm_head.weight"})
    network = "FalconForCausalLM"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "vocab_size": 97,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "use_cache": False,
    }

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        logits = net(input_ids=batch["tokens"])[0]
        return cross_entropy(logits.reshape(-1, 97), batch["labels"])


PAIR = Falcon()
