"""What a call computes, told by the names that frameworks and users give."""

from __future__ import annotations

import pytest

from msprobe_ms.comparison.layer_kinds import Kind, kind_of
from msprobe_ms.dump.names import parse_entry

_KINDS = {
    Kind.LINEAR: ("Dense", "Linear", "ColumnParallelLinear", "Conv2d", "Functional.matmul", "Primitive.MatMul.MatMul"),
    Kind.NORM: ("LayerNorm", "LlamaRMSNorm", "Functional.layer_norm", "Mint.rms_norm"),
    Kind.CHANNEL_NORM: ("GroupNorm", "InstanceNorm1d", "Functional.group_norm"),
    Kind.BATCH_NORM: ("BatchNorm2d", "SyncBatchNorm", "BatchNormAct2d", "Functional.batch_norm"),
    Kind.ACTIVATION: ("ReLU", "GELU", "SiLU", "HSwish", "Functional.leaky_relu", "MintFunctional.silu"),
    Kind.SUM: ("Tensor.add", "Functional.sub", "Tensor.__radd__", "Mint.sum", "Primitive.ReduceSum.ReduceSum"),
    Kind.MEAN: ("AdaptiveAvgPool2d", "AvgPool1d", "GlobalAvgPooling", "Tensor.mean", "Primitive.ReduceMean.ReduceMean"),
    Kind.PART: ("Tensor.__getitem__", "Tensor.split", "Mint.narrow", "Primitive.StridedSlice.StridedSlice"),
    Kind.SOFTMAX: ("Softmax", "Functional.softmax", "MintFunctional.softmax", "Primitive.Softmax.Softmax"),
    Kind.COARSE: ("Tanh", "LSTM", "GRUCell", "Functional.tanh", "_DynamicLSTMCPUGPU"),
    Kind.RANDOM: ("Dropout", "Dropout2d", "DropPath", "Functional.dropout", "Torch.rand_like", "Torch.randn",
                  "Tensor.bernoulli_", "Tensor.normal_", "Mint.multinomial", "Torch.randperm", "Tensor.uniform_"),
    Kind.COLLECTIVE: ("AllReduce", "AllGather", "ReduceScatter", "MintDistributed.all_reduce", "Distributed.barrier"),
    Kind.OTHER: ("Attention", "Block", "Embedding", "PixelShuffle", "ChannelShuffle", "Functional.normalize",
                 "Functional.log_softmax", "NormalizedResidual", "Tensor.broadcast_to", "LinearAttention"),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in _KINDS.items() for name in names])
def test_a_call_is_told_by_its_name(kind: Kind, name: str) -> None:
    entry = f"{name}.0.forward" if "." in name else f"Cell.net.x.{name}.forward.0"
    parsed = parse_entry(entry)
    assert parsed is not None
    assert kind_of(parsed) is kind


def test_what_follows_no_grammar_is_anything() -> None:
    assert kind_of(None) is Kind.OTHER
