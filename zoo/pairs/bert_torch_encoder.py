"""BERT's encoder of mindone beside torch.nn.TransformerEncoder, whose queries, keys and values are one."""

from typing import Any

import numpy as np

from zoo.pair import Batch, CrossEntropy, Pair

_QKV = ("query", "key", "value")


class BertBesideEncoder(Pair):
    names = (
        (r"^layer\b", "layers"),
        (r"attention\.self\.(query|key|value)\.", "self_attn.in_proj_"),
        (r"attention\.output\.dense", "self_attn.out_proj"),
        (r"attention\.output\.LayerNorm", "norm1"),
        (r"intermediate\.dense", "linear1"),
        (r"output\.dense", "linear2"),
        (r"output\.LayerNorm", "norm2"),
    )

    def golden(self) -> Any:
        from torch import nn

        layer = nn.TransformerEncoderLayer(
            32, 4, 64, dropout=0.0, activation="gelu", layer_norm_eps=1e-12, batch_first=True
        )
        return nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)

    def target(self) -> Any:
        from mindone.transformers.models.bert.modeling_bert import BertEncoder
        from transformers import BertConfig

        config = BertConfig(
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=3,
            num_attention_heads=4,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            attn_implementation="eager",
        )
        return BertEncoder(config)

    def value(self, path: str, golden: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        part = next((index for index, name in enumerate(_QKV) if f".{name}." in path), None)
        return golden.reshape(shape) if part is None else np.split(golden, 3)[part]

    def batch(self, generator: np.random.Generator) -> Batch:
        states = generator.standard_normal((4, 9, 32)).astype(np.float32)
        return {"states": states, "labels": generator.integers(0, 32, 4)}

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        return cross_entropy(net(batch["states"]).mean(1), batch["labels"])

    def target_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        return cross_entropy(net(batch["states"])[0].mean(1), batch["labels"])


PAIR = BertBesideEncoder()
