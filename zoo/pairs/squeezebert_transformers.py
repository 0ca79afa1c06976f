"""SqueezeBERT, whose projections are grouped convolutions: mindone.transformers beside transformers."""

from typing import Any, ClassVar

import numpy as np

from zoo.pair import Batch, CrossEntropy, SameName


class SqueezeBert(SameName):
    network = "SqueezeBertForSequenceClassification"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "vocab_size": 97,
        "embedding_size": 32,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": 32,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "num_labels": 5,
    }

    def batch(self, generator: np.random.Generator) -> Batch:
        return {"tokens": generator.integers(2, 97, (4, 12)), "labels": generator.integers(0, 5, 4)}

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        return cross_entropy(net(input_ids=batch["tokens"])[0], batch["labels"])


PAIR = SqueezeBert()
