"""GPT-2 of mindone beside torch.nn.TransformerEncoder with a causal mask: fused, and weights the other way round."""

from typing import Any

import numpy as np

from zoo.pair import LanguageModel


class GPT2BesideEncoder(LanguageModel):
    optimizer = "adam"
    learning_rate = 1e-3
    names = (
        (r"^transformer\.wte\.", "words."),
        (r"^transformer\.wpe\.", "places."),
        (r"^transformer\.h\.(\d+)\.ln_", r"blocks.layers.\1.norm"),
        (r"^transformer\.h\.(\d+)\.attn\.c_attn\.", r"blocks.layers.\1.self_attn.in_proj_"),
        (r"^transformer\.h\.(\d+)\.attn\.c_proj\.", r"blocks.layers.\1.self_attn.out_proj."),
        (r"^transformer\.h\.(\d+)\.mlp\.c_fc\.", r"blocks.layers.\1.linear1."),
        (r"^transformer\.h\.(\d+)\.mlp\.c_proj\.", r"blocks.layers.\1.linear2."),
        (r"^transformer\.ln_f\.", "blocks.norm."),
    )

    def golden(self) -> Any:
        import torch
        from torch import nn

        class Decoder(nn.Module):
            def __init__(self, vocabulary: int) -> None:
                super().__init__()
                self.words, self.places = nn.Embedding(vocabulary, 32), nn.Embedding(32, 32)
                layer = nn.TransformerEncoderLayer(
                    32, 4, 64, dropout=0.0, activation=nn.GELU("tanh"), batch_first=True, norm_first=True
                )
                self.blocks = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(32), enable_nested_tensor=False)

            def forward(self, input_ids: Any) -> Any:
                length = input_ids.shape[1]
                states = self.words(input_ids) + self.places(torch.arange(length))
                mask = nn.Transformer.generate_square_subsequent_mask(length)
                return (self.blocks(states, mask=mask, is_causal=True) @ self.words.weight.T,)

        return Decoder(self.vocabulary)

    def target(self) -> Any:
        from mindone.transformers import GPT2LMHeadModel
        from transformers import GPT2Config

        config = GPT2Config(
            vocab_size=self.vocabulary,
            n_embd=32,
            n_inner=64,
            n_layer=2,
            n_head=4,
            n_positions=32,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            resid_pdrop=0.0,
            use_cache=False,
            attn_implementation="eager",
        )
        return GPT2LMHeadModel(config)

    def value(self, path: str, golden: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """A Conv1D of GPT-2 holds its weight as inputs by outputs."""
        return golden.T if ".c_" in path and path.endswith("weight") else golden.reshape(shape)


PAIR = GPT2BesideEncoder()
