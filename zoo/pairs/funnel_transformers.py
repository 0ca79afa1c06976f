"""Funnel transformer, pooled queries: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pair import SentenceClassifier


class Funnel(SentenceClassifier):
    network = "FunnelForSequenceClassification"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "vocab_size": 97,
        "d_model": 32,
        "n_head": 4,
        "d_head": 8,
        "d_inner": 64,
        "block_sizes": [1, 1],
        "num_decoder_layers": 1,
        "hidden_dropout": 0.0,
        "attention_dropout": 0.0,
        "activation_dropout": 0.0,
        "num_labels": 5,
    }


PAIR = Funnel()
