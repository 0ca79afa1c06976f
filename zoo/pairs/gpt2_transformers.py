"""GPT-2, whose projections are Conv1D with transposed weights: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pair import LanguageModel, SameName


class GPT2(SameName, LanguageModel):
    unused = frozenset({"lm_head.weight"})
    network = "GPT2LMHeadModel"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "vocab_size": LanguageModel.vocabulary,
        "n_embd": 32,
        "n_layer": 2,
        "n_head": 4,
        "n_positions": 32,
        "embd_pdrop": 0.0,
        "attn_pdrop": 0.0,
        "resid_pdrop": 0.0,
        "use_cache": False,
    }


PAIR = GPT2()
