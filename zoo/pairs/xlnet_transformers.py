"""XLNet: two streams, places that are relative by sine: mindone.transformers beside transformers."""

from typing import Any, ClassVar

from zoo.pair import LanguageModel, SameName


class XLNet(SameName, LanguageModel):
    unused = frozenset({"lm_loss.weight"})
    network = "XLNetLMHeadModel"
    optimizer = "adam"
    learning_rate = 1e-3
    settings: ClassVar[dict[str, Any]] = {
        "vocab_size": LanguageModel.vocabulary,
        "d_model": 32,
        "n_layer": 2,
        "n_head": 4,
        "d_inner": 64,
        "dropout": 0.0,
    }


PAIR = XLNet()
