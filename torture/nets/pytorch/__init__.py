"""The nets in PyTorch, healthy, under the same attribute names."""

from __future__ import annotations

from torch import nn

from torture.nets.pytorch.convolutional import LeNet, ResNet, UNet
from torture.nets.pytorch.plain import DropoutMlp, Gru, Lstm, Mlp
from torture.nets.pytorch.transformers import CompiledEncoder, Encoder, Gpt, Llama, Moe, Vit

NETS: dict[str, type[nn.Module]] = {
    "mlp": Mlp,
    "dropout_mlp": DropoutMlp,
    "lenet": LeNet,
    "resnet": ResNet,
    "unet": UNet,
    "lstm": Lstm,
    "gru": Gru,
    "encoder": Encoder,
    "gpt": Gpt,
    "llama": Llama,
    "moe": Moe,
    "vit": Vit,
    "compiled_encoder": CompiledEncoder,
}
