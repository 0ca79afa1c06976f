"""The nets in MindSpore. What a fault may change of a Cell is an attribute of it; as built, they are healthy."""

from __future__ import annotations

from mindspore import nn

from benchmarks.faults.mindspore_nets.convolutional import LeNet, ResNet, UNet
from benchmarks.faults.mindspore_nets.plain import DropoutMlp, Gru, Lstm, Mlp
from benchmarks.faults.mindspore_nets.transformers import CompiledEncoder, Encoder, Gpt, Llama, Moe, Vit

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
