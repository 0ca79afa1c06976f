"""DeBERTa v2, whose attention disentangles content and place: mindone.transformers beside transformers."""

from typing import Any, ClassVar

import numpy as np

from zoo.pair import Batch, CrossEntropy, SameName


class Deberta(SameName):
    network = "DebertaV2ForTokenClassification"
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
        "relative_attention": True,
        "pos_att_type": ["p2c", "c2p"],
        "share_att_key": True,
        "norm_rel_ebd": "layer_norm",
        "conv_kernel_size": 3,
        "conv_act": "gelu",
        "num_labels": 5,
    }

    def batch(self, generator: np.random.Generator) -> Batch:
        return {"tokens": generator.integers(1, 97, (3, 12)), "labels": generator.integers(0, 5, 36)}

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        logits = net(input_ids=batch["tokens"])[0]
        return cross_entropy(logits.reshape(-1, 5), batch["labels"])


PAIR = Deberta()
