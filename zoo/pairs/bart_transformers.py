"""BART finds an answer: an encoder, and a decoder of its words shifted: mindone.transformers beside transformers."""

from typing import Any, ClassVar

import numpy as np

from zoo.pair import Batch, CrossEntropy, SameName


class Bart(SameName):
    unused = frozenset({"model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"})
    network = "BartForQuestionAnswering"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "vocab_size": 97,
        "d_model": 32,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_ffn_dim": 64,
        "decoder_ffn_dim": 64,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "max_position_embeddings": 32,
        "dropout": 0.0,
        "use_cache": False,
    }

    def batch(self, generator: np.random.Generator) -> Batch:
        places = generator.integers(0, 14, (2, 3))
        return {"tokens": generator.integers(4, 97, (3, 14)), "starts": places[0], "ends": places[1]}

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        starts, ends = net(input_ids=batch["tokens"], return_dict=False)[:2]
        return cross_entropy(starts, batch["starts"]) + cross_entropy(ends, batch["ends"])


PAIR = Bart()
