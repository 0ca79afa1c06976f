"""Whisper: from a spectrogram to tokens: mindone.transformers beside transformers."""

from typing import Any, ClassVar

import numpy as np

from zoo.pair import Batch, CrossEntropy, SameName


class Whisper(SameName):
    unused = frozenset({"proj_out.weight"})
    network = "WhisperForConditionalGeneration"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "vocab_size": 97,
        "num_mel_bins": 16,
        "d_model": 32,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_ffn_dim": 64,
        "decoder_ffn_dim": 64,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "max_source_positions": 20,
        "max_target_positions": 16,
        "dropout": 0.0,
        "use_cache": False,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "decoder_start_token_id": 1,
        "begin_suppress_tokens": None,
    }

    def batch(self, generator: np.random.Generator) -> Batch:
        words = generator.integers(4, 97, (2, 10))
        return {
            "sound": generator.standard_normal((2, 16, 40)).astype(np.float32),
            "words": words[:, :-1].copy(),
            "labels": words[:, 1:].reshape(-1).copy(),
        }

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        logits = net(input_features=batch["sound"], decoder_input_ids=batch["words"])[0]
        return cross_entropy(logits.reshape(-1, 97), batch["labels"])


PAIR = Whisper()
