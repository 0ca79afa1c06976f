"""RemBERT, narrow embeddings: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pair import SentenceClassifier


class Rembert(SentenceClassifier):
    network = "RemBertForSequenceClassification"
    optimizer = "sgd"
    learning_rate = 0.01
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
        "input_embedding_size": 16,
        "classifier_dropout_prob": 0.0,
    }


PAIR = Rembert()
