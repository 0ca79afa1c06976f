"""Nyströmformer: attention by landmarks, whose pseudo-inverse is iterated: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pair import SentenceClassifier


class Nystromformer(SentenceClassifier):
    network = "NystromformerForSequenceClassification"
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
        "num_landmarks": 4,
        "segment_means_seq_len": 12,
        "conv_kernel_size": 3,
    }


PAIR = Nystromformer()
