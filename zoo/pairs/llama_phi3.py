"""Llama of mindone beside Phi-3 of transformers, which joins queries, keys and values, and gate and input."""

from typing import Any

import numpy as np

from zoo.pair import LanguageModel


class LlamaBesidePhi3(LanguageModel):
    optimizer = "adam"
    learning_rate = 1e-3
    names = ((r"self_attn\.[qkv]_proj", "self_attn.qkv_proj"), (r"mlp\.(gate|up)_proj", "mlp.gate_up_proj"))

    def _settings(self) -> dict[str, Any]:
        return {
            "vocab_size": self.vocabulary,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "rms_norm_eps": 1e-6,
            "pad_token_id": None,
            "use_cache": False,
            "attn_implementation": "eager",
        }

    def golden(self) -> Any:
        from transformers import Phi3Config, Phi3ForCausalLM

        return Phi3ForCausalLM(Phi3Config(**self._settings()))

    def target(self) -> Any:
        from mindone.transformers import LlamaForCausalLM
        from transformers import LlamaConfig

        return LlamaForCausalLM(LlamaConfig(**self._settings()))

    def value(self, path: str, golden: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        parts = {"q_proj": slice(0, 32), "k_proj": slice(32, 48), "v_proj": slice(48, 64)}
        parts |= {"gate_proj": slice(0, 64), "up_proj": slice(64, 128)}
        rows = parts.get(path.split(".")[-2])
        return golden.reshape(shape) if rows is None else golden[rows]


PAIR = LlamaBesidePhi3()
