"""mT5: relative positions in the first layer, gated feed-forward: mindone.transformers beside transformers."""

from typing import Any, ClassVar

import numpy as np

from zoo.pair import Batch, CrossEntropy, SameName


class Mt5(SameName):
    unused = frozenset({"encoder.embed_tokens.weight", "decoder.embed_tokens.weight"})
    network = "MT5ForConditionalGeneration"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "vocab_size": 97,
        "d_model": 32,
        "d_kv": 8,
        "d_ff": 64,
        "num_layers": 2,
        "num_decoder_layers": 2,
        "num_heads": 4,
        "dropout_rate": 0.0,
        "use_cache": False,
        "decoder_start_token_id": 0,
    }

    def batch(self, generator: np.random.Generator) -> Batch:
        words = generator.integers(1, 97, (3, 10))
        return {
            "tokens": generator.integers(1, 97, (3, 12)),
            "words": words[:, :-1].copy(),
            "labels": words[:, 1:].reshape(-1).copy(),
        }

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        logits = net(input_ids=batch["tokens"], decoder_input_ids=batch["words"])[0]
        return cross_entropy(logits.reshape(-1, 97), batch["labels"])


PAIR = Mt5()
