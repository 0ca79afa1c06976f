"""DistilBERT of mindone beside torch.nn.TransformerEncoder: norms behind the sums, projections joined, rows padded."""

from typing import Any

import numpy as np

from zoo.pair import Batch, CrossEntropy, LanguageModel


class DistilBertBesideEncoder(LanguageModel):
    joined = ("q_lin", "k_lin", "v_lin")
    optimizer = "adam"
    learning_rate = 1e-3
    width = 32
    names = (
        (r"^distilbert\.embeddings\.word_embeddings\.", "words."),
        (r"^distilbert\.embeddings\.position_embeddings\.", "places."),
        (r"^distilbert\.embeddings\.LayerNorm\.", "norm."),
        (r"^distilbert\.transformer\.layer\.(\d+)\.", r"blocks.layers.\1."),
        (r"attention\.[qkv]_lin\.", "self_attn.in_proj_"),
        (r"attention\.out_lin\.", "self_attn.out_proj."),
        (r"sa_layer_norm\.", "norm1."),
        (r"ffn\.lin", "linear"),
        (r"output_layer_norm\.", "norm2."),
    )

    def golden(self) -> Any:
        import torch
        from torch import nn

        class Tagger(nn.Module):
            def __init__(self, vocabulary: int, width: int) -> None:
                super().__init__()
                self.words = nn.Embedding(vocabulary, width, padding_idx=0)
                self.places = nn.Embedding(32, width)
                self.norm = nn.LayerNorm(width, eps=1e-12)
                layer = nn.TransformerEncoderLayer(
                    width, 4, 2 * width, dropout=0.0, activation="gelu", layer_norm_eps=1e-12, batch_first=True
                )
                self.blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
                self.classifier = nn.Linear(width, vocabulary)

            def forward(self, input_ids: Any, attention_mask: Any) -> Any:
                states = self.words(input_ids) + self.places(torch.arange(input_ids.shape[1]))
                states = self.blocks(self.norm(states), src_key_padding_mask=attention_mask == 0)
                return (self.classifier(states),)

        return Tagger(self.vocabulary, self.width)

    def target(self) -> Any:
        from mindone.transformers import DistilBertForTokenClassification
        from transformers import DistilBertConfig

        config = DistilBertConfig(
            vocab_size=self.vocabulary,
            dim=self.width,
            hidden_dim=2 * self.width,
            n_layers=2,
            n_heads=4,
            max_position_embeddings=32,
            num_labels=self.vocabulary,
            dropout=0.0,
            attention_dropout=0.0,
            seq_classif_dropout=0.0,
            attn_implementation="eager",
        )
        return DistilBertForTokenClassification(config)

    def batch(self, generator: np.random.Generator) -> Batch:
        rows, length = 4, 12
        mask = np.arange(length) < generator.integers(length // 2, length, rows)[:, None]
        tokens = generator.integers(1, self.vocabulary, (rows, length)) * mask
        return {"tokens": tokens, "mask": mask.astype(np.int64), "labels": tokens.reshape(-1)}

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        logits = net(input_ids=batch["tokens"], attention_mask=batch["mask"])[0]
        return cross_entropy(logits.reshape(-1, self.vocabulary), batch["labels"])


PAIR = DistilBertBesideEncoder()
