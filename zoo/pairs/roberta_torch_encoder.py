"""RoBERTa of mindone, classifying sentences, beside torch.nn.TransformerEncoder, without padding."""

from typing import Any

import numpy as np

from zoo.pair import Batch, CrossEntropy, Pair


class RobertaBesideEncoder(Pair):
    joined = ("query", "key", "value")
    optimizer = "sgd"
    vocabulary, classes, width = 97, 5, 32
    names = (
        (r"^roberta\.embeddings\.word_embeddings\.", "words."),
        (r"^roberta\.embeddings\.position_embeddings\.", "places."),
        (r"^roberta\.embeddings\.token_type_embeddings\.", "kinds."),
        (r"^roberta\.embeddings\.LayerNorm\.", "norm."),
        (r"^roberta\.encoder\.layer\.(\d+)\.", r"blocks.layers.\1."),
        (r"attention\.self\.(query|key|value)\.", "self_attn.in_proj_"),
        (r"attention\.output\.dense\.", "self_attn.out_proj."),
        (r"attention\.output\.LayerNorm\.", "norm1."),
        (r"intermediate\.dense\.", "linear1."),
        (r"output\.dense\.", "linear2."),
        (r"output\.LayerNorm\.", "norm2."),
        (r"^classifier\.dense\.", "hidden."),
        (r"^classifier\.out_proj\.", "head."),
    )

    def golden(self) -> Any:
        import torch
        from torch import nn

        class Classifier(nn.Module):
            def __init__(self, vocabulary: int, width: int, classes: int) -> None:
                super().__init__()
                self.words = nn.Embedding(vocabulary, width, padding_idx=1)
                self.places = nn.Embedding(32, width, padding_idx=1)
                self.kinds = nn.Embedding(2, width)
                self.norm = nn.LayerNorm(width, eps=1e-12)
                layer = nn.TransformerEncoderLayer(
                    width, 4, 2 * width, dropout=0.0, activation="gelu", layer_norm_eps=1e-12, batch_first=True
                )
                self.blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
                self.hidden = nn.Linear(width, width)
                self.head = nn.Linear(width, classes)

            def forward(self, input_ids: Any) -> Any:
                places = torch.arange(2, 2 + input_ids.shape[1])
                states = self.words(input_ids) + self.places(places) + self.kinds.weight[0]
                states = self.blocks(self.norm(states))
                return (self.head(torch.tanh(self.hidden(states[:, 0]))),)

        return Classifier(self.vocabulary, self.width, self.classes)

    def target(self) -> Any:
        from mindone.transformers import RobertaForSequenceClassification
        from transformers import RobertaConfig

        config = RobertaConfig(
            vocab_size=self.vocabulary,
            hidden_size=self.width,
            intermediate_size=2 * self.width,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=32,
            type_vocab_size=2,
            num_labels=self.classes,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            attn_implementation="eager",
        )
        return RobertaForSequenceClassification(config)

    def batch(self, generator: np.random.Generator) -> Batch:
        tokens = generator.integers(2, self.vocabulary, (4, 12))
        return {"tokens": tokens, "labels": generator.integers(0, self.classes, 4)}

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        return cross_entropy(net(input_ids=batch["tokens"])[0], batch["labels"])


PAIR = RobertaBesideEncoder()
