"""Mamba: a selective state that is scanned: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pair import CrossEntropy, LanguageModel, SameName


class Mamba(SameName, LanguageModel):
    unused = frozenset({"lm_head.weight"})
    network = "MambaForCausalLM"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "vocab_size": 97,
        "hidden_size": 32,
        "state_size": 8,
        "num_hidden_layers": 2,
        "time_step_rank": 4,
        "use_cache": False,
    }

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        logits = net(input_ids=batch["tokens"])[0]
        return cross_entropy(logits.reshape(-1, 97), batch["labels"])


PAIR = Mamba()
