"""FlauBERT: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pair import SentenceClassifier


class Flaubert(SentenceClassifier):
    network = "FlaubertForSequenceClassification"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "vocab_size": 97,
        "emb_dim": 32,
        "n_layers": 2,
        "n_heads": 4,
        "max_position_embeddings": 32,
        "dropout": 0.0,
        "attention_dropout": 0.0,
        "num_labels": 5,
        "pre_norm": True,
        "summary_first_dropout": 0.0,
    }


PAIR = Flaubert()
