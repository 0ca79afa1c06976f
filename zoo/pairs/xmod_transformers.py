"""X-MOD, adapters of languages: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pair import SentenceClassifier


class Xmod(SentenceClassifier):
    computed = r"\bposition_ids$"
    network = "XmodForSequenceClassification"
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
        "languages": ["a_B", "c_D"],
        "default_language": "c_D",
    }


PAIR = Xmod()
