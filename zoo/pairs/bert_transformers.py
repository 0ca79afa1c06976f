"""BERT that classifies sentences, a part of them padded: mindone.transformers beside transformers."""

from typing import Any, ClassVar

import numpy as np

from zoo.pair import Batch, CrossEntropy, SameName


class Bert(SameName):
    network = "BertForSequenceClassification"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "vocab_size": 97,
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
        rows, length = 4, 12
        lengths = generator.integers(length // 2, length, rows)
        mask = np.arange(length) < lengths[:, None]
        return {
            "tokens": generator.integers(0, 97, (rows, length)) * mask,
            "mask": mask.astype(np.int64),
            "labels": generator.integers(0, 5, rows),
        }

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        return cross_entropy(net(input_ids=batch["tokens"], attention_mask=batch["mask"])[0], batch["labels"])


PAIR = Bert()
