"""The nets in PyTorch, healthy, under the same attribute names."""

from __future__ import annotations

from torch import nn

from benchmarks.faults.pytorch_nets.convolutional import LeNet, ResNet, UNet
from benchmarks.faults.pytorch_nets.plain import DropoutMlp, Gru, Lstm, Mlp
from benchmarks.faults.pytorch_nets.transformers import CompiledEncoder, Encoder, Gpt, Llama, Moe, Vit

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
