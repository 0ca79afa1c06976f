"""EnCodec: a wave through convolutions and an LSTM, and back again: mindone.transformers beside transformers."""

from typing import Any

import numpy as np

from zoo.pair import Batch, CrossEntropy, Pair


class Encodec(Pair):
    learning_rate = 0.02
    names = ()

    def _config(self) -> Any:
        from transformers import EncodecConfig

        return EncodecConfig(
            num_filters=8,
            hidden_size=32,
            codebook_dim=32,
            upsampling_ratios=[4, 2],
            num_lstm_layers=2,
            norm_type="time_group_norm",
            use_causal_conv=False,
            pad_mode="constant",
        )

    def golden(self) -> Any:
        import torch
        from transformers import EncodecModel

        net = EncodecModel(self._config())
        return torch.nn.Sequential(net.encoder, net.decoder)

    def target(self) -> Any:
        from mindone.transformers import EncodecModel
        from mindspore import nn

        net = EncodecModel(self._config())
        return nn.SequentialCell(net.encoder, net.decoder)

    def batch(self, generator: np.random.Generator) -> Batch:
        return {"wave": generator.standard_normal((2, 1, 128)).astype(np.float32)}

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        return ((net(batch["wave"]) - batch["wave"]) ** 2).mean()


PAIR = Encodec()
