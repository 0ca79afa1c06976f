"""The built-in tables: what MindSpore and PyTorch call alike."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from repository import ROOT

from msprobe_ms.comparison.pairing.operations import family_of, layer_kind, operation_of, tables
from msprobe_ms.dump.names import parse_entry


def _operation(entry: str, mindspore: bool) -> str:
    parsed = parse_entry(entry)
    assert parsed is not None
    return operation_of(parsed, mindspore=mindspore)


@pytest.mark.parametrize(
    ("mindspore", "pytorch"),
    [
        ("Functional.abs", "Torch.abs"),
        ("Functional.relu", "Functional.relu"),
        ("Tensor.add", "Tensor.add"),
        ("Tensor.__add__", "Torch.add"),
        ("Tensor.add_", "Tensor.__iadd__"),
        ("Mint.matmul", "Torch.matmul"),
        ("Mint.add", "Tensor.__add__"),
        ("MintFunctional.softmax", "Functional.softmax"),
        ("MintDistributed.all_reduce", "Distributed.all_reduce"),
        ("Functional.concat", "Torch.cat"),
        ("Functional.equal", "Tensor.__eq__"),
        ("Functional.transpose", "Tensor.permute"),
        ("Tensor.swapaxes", "Tensor.transpose"),
        ("Functional.gather_elements", "Torch.gather"),
        ("Functional.dense", "Functional.linear"),
        ("Tensor.astype", "Tensor.to"),
        ("Primitive.conv2d.Conv2D", "Functional.conv2d"),
        ("Primitive.matmul.MatMul", "Torch.matmul"),
        ("Primitive.matmul.MatMulExt", "Torch.matmul"),
        ("Primitive.bn_train.BatchNorm", "Functional.batch_norm"),
        ("Primitive.max_pool.MaxPool", "Functional.max_pool2d"),
        ("Primitive.log_softmax.LogSoftmax", "Functional.log_softmax"),
        ("Primitive.layer_norm.LayerNorm", "Functional.layer_norm"),
        ("Primitive.act.GeLU", "Functional.gelu"),
        ("Primitive.norm.RmsNorm", "NPU.npu_rms_norm"),
        ("Functional.swiglu", "NPU.npu_swiglu"),
        ("Functional.flash_attention_score", "NPU.npu_fusion_attention"),
        ("Primitive.fa.FlashAttentionScore", "Functional.scaled_dot_product_attention"),
        ("Functional.rotary_position_embedding", "NPU.npu_rotary_mul"),
        ("Primitive.c.Conv2DExt", "Functional.conv2d"),
        ("Primitive.c.ReverseV2", "Torch.flip"),
        ("Functional.einsum_ext", "Torch.einsum"),
        ("MintFunctional.inplace_elu", "Functional.elu_"),
        ("Primitive.x.ReLU", "Tensor.relu_"),
        ("Primitive.x.SmoothL1Loss", "Functional.smooth_l1_loss"),
        ("Primitive.relu6.ReLU6", "Functional.hardtanh"),
        ("Primitive.x.RealDiv", "Tensor.__truediv__"),
    ],
)
def test_an_operation_has_one_word_in_both_frameworks(mindspore: str, pytorch: str) -> None:
    assert _operation(f"{mindspore}.0.forward", True) == _operation(f"{pytorch}.3.backward", False)


@pytest.mark.parametrize(
    ("mindspore", "pytorch"),
    [
        ("Functional.relu", "Functional.gelu"),
        ("Tensor.__sub__", "Tensor.__rsub__"),
        ("Functional.gather", "Torch.gather"),
        ("Primitive.matmul.MatMul", "Functional.linear"),
    ],
)
def test_different_operations_have_different_words(mindspore: str, pytorch: str) -> None:
    assert _operation(f"{mindspore}.0.forward", True) != _operation(f"{pytorch}.0.forward", False)


def test_a_family_holds_what_does_the_same_to_a_shape() -> None:
    assert family_of("permute") == family_of("transpose") != family_of("reshape") == family_of("flatten")
    assert family_of("softmax") == "softmax"


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("Dense", "Linear"),
        ("Linear", "Dense"),
        ("Linear", "Linear"),
        ("Conv2d", "Conv2d"),
        ("Conv2dTranspose", "ConvTranspose2d"),
        ("LayerNorm", "FusedLayerNorm"),
        ("HSwish", "Hardswish"),
        ("LogSoftmax", "LogSoftmax"),
        ("SequentialCell", "Sequential"),
        ("CellList", "ModuleList"),
        ("SoftmaxCrossEntropyWithLogits", "CrossEntropyLoss"),
        ("ColumnParallelLinear", "RowParallelLinear"),
        ("MyBlock", "MyBlock"),
    ],
)
def test_the_same_layer_under_two_names(ours: str, theirs: str) -> None:
    assert layer_kind(ours) == layer_kind(theirs)


@pytest.mark.parametrize(("ours", "theirs"), [("Dense", "LayerNorm"), ("Conv1d", "Conv2d"), ("GELU", "ReLU")])
def test_different_layers(ours: str, theirs: str) -> None:
    assert layer_kind(ours) != layer_kind(theirs)


def test_tables_hold_names_only() -> None:
    known = tables()
    assert len(known.apis) > 800
    for table in (known.apis, known.mindspore, known.primitives, known.synonyms, known.families, known.classes):
        assert all(isinstance(name, str) and isinstance(twin, str) and twin for name, twin in table.items())
    assert all(len(name.split(".")) == len(twin.split(".")) == 2 for name, twin in known.apis.items())


def test_words_of_groups_and_families_are_final() -> None:
    """A word that is a synonym of another would never be met."""
    known = tables()
    words = {part.word for parts in known.groups.values() for part in parts} | set(known.families)
    assert [word for word in words if word in known.synonyms and known.synonyms[word] != word] == []


@pytest.mark.processes
def test_the_table_is_made_from_the_public_pairs(tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text(
        "pytorch,mindspore,agreement\n"
        "torch.absolute,mindspore.ops.abs,consistent\n"
        "torch.abs,mindspore.ops.abs,consistent\n"
        "torch.nn.functional.relu,mindspore.mint.nn.functional.relu,consistent\n"
        "torch.Tensor.T,mindspore.Tensor.T,consistent\n"
        "torch.nn.Linear,mindspore.nn.Dense,differs\n"
        "torch.nn.ReLU,mindspore.nn.ReLU,consistent\n"
        "torch.optim.SGD,mindspore.nn.SGD,differs\n"
        "torchvision.ops.nms,mindspore.ops.NMSWithMask,differs\n",
        encoding="utf-8",
    )
    script = ROOT / "tools" / "public_pairs.py"
    done = subprocess.run([sys.executable, str(script), str(pairs)], capture_output=True, text=True, check=True)
    lines = [line for line in done.stdout.splitlines() if not line.startswith("#")]
    assert lines == [
        "apis:",
        "  Functional.abs: Torch.abs",
        "  MintFunctional.relu: Functional.relu",
        "",
        "classes:",
        "  Dense: Linear",
    ]
