"""CANINE: characters attend in windows before they are sampled: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pair import SentenceClassifier


class Canine(SentenceClassifier):
    network = "CanineForSequenceClassification"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "vocab_size": 97,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "num_labels": 5,
        "max_position_embeddings": 64,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "num_hash_buckets": 64,
        "num_hash_functions": 4,
        "local_transformer_stride": 16,
        "downsampling_rate": 4,
        "upsampling_kernel_size": 4,
    }


PAIR = Canine()
