"""ModernBERT: windows, rotations, and gated layers; local layers turn as global ones do, as mindone knows no others."""

from typing import Any, ClassVar

from zoo.pair import SentenceClassifier


class ModernBert(SentenceClassifier):
    network = "ModernBertForSequenceClassification"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "vocab_size": 97,
        "hidden_size": 32,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": 48,
        "num_labels": 5,
        "pad_token_id": 0,
        "cls_token_id": 1,
        "local_attention": 4,
        "max_position_embeddings": 64,
        "reference_compile": False,
        "local_rope_theta": 160000.0,
    }


PAIR = ModernBert()
