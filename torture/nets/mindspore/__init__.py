"""The nets in MindSpore. What a fault may change of a Cell is an attribute of it; as built, they are healthy."""

from __future__ import annotations

from mindspore import nn

from torture.nets.mindspore.convolutional import LeNet, ResNet, UNet
from torture.nets.mindspore.plain import DropoutMlp, Gru, Lstm, Mlp
from torture.nets.mindspore.transformers import CompiledEncoder, Encoder, Gpt, Llama, Moe, Vit

NETS: dict[str, type[nn.Cell]] = {
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
