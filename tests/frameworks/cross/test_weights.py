"""``compare_weights``: the same weights in every format are equal; what differs is found, said and reported."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import openpyxl
import pytest
import torch
from mindspore import nn as ms_nn
from safetensors.torch import load_file, save_file
from weight_files import torch_net, write_all

from msprobe_ms.cli.main import main
from msprobe_ms.support.errors import DumpFormatError
from msprobe_ms.weights.open import open_weights

FORMATS = (
    "net.ckpt", "crc.ckpt", "sliced.ckpt", "training.ckpt", "ms.safetensors", "net.pt", "whole.pth", "training.pt",
    "net.safetensors", "net.npz", "compressed.npz",
)  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weights")
    write_all(folder)
    return folder


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Compare two paths; the exit status and what was printed."""

    def compare(target: Path, golden: Path, *more: str) -> tuple[int, str]:
        status = main(["compare_weights", str(target), str(golden), "-o", str(tmp_path / "out"), *more])
        printed = capsys.readouterr()
        return status, printed.out + printed.err

    return compare


def state() -> dict[str, Any]:
    return dict(torch_net().state_dict())


def saved(folder: Path, name: str, tensors: object) -> Path:
    torch.save(tensors, folder / name)
    return folder / name


@pytest.mark.parametrize("name", FORMATS)
def test_the_same_weights_are_equal_in_every_format(name: str, files: Path, run: Any) -> None:
    status, text = run(files / name, files / "net.pt", "--exit-code")
    assert status == 0, text
    assert "9 parameters compared: 9 equal\n" in text or "10 parameters compared: 10 equal\n" in text
    assert "CONSISTENT: all parameters are equal\n" in text


@pytest.mark.parametrize("name", FORMATS)
def test_every_number_is_the_one_that_was_saved(name: str, files: Path) -> None:
    expected = sorted(tensor.numpy().tobytes() for tensor in state().values() if tensor.ndim)
    with open_weights(files / name) as found:
        weights = list(found.weights.values())
        arrays = [weight.load() for weight in weights]
    assert [array.shape for array in arrays] == [weight.shape for weight in weights]
    assert [array.dtype.name for array in arrays] == [weight.dtype for weight in weights]
    written = {array.tobytes() for array in arrays}
    assert set(expected) <= written


def test_what_is_no_parameter_is_left_out_and_counted(files: Path, run: Any) -> None:
    _, text = run(files / "training.ckpt", files / "training.pt")
    lines = text.splitlines()
    assert lines[0].endswith("training.ckpt (MindSpore checkpoint): 9 parameters; left out: "
                             "texts 1, counters 6, optimizer states 14")  # fmt: skip
    assert lines[1].endswith("training.pt (PyTorch checkpoint): 10 parameters; left out: "
                             "tensors under optimizer 21, counters 1")  # fmt: skip
    assert "tied: module.head.weight has the same numbers as module.embed.weight, which was compared" in text


@pytest.mark.parametrize("optimizer", ["Adam", "AdamWeightDecay", "Momentum", "SGD", "RMSProp", "FTRL", "ASGD", "Rprop",
                                       "Adadelta", "AdaFactor", "Adagrad", "AdaMax"])  # fmt: skip
def test_states_of_mindspores_optimizers_are_told_from_parameters(optimizer: str, tmp_path: Path) -> None:
    from msprobe_ms.comparison.pairing.rules.files import Mappings
    from msprobe_ms.weights.compare import compare_weights

    net = ms_nn.SequentialCell(ms_nn.Dense(4, 3), ms_nn.LayerNorm((3,)))
    more = {"learning_rate": 0.1, "momentum": 0.9} if optimizer in ("Momentum", "SGD") else {}
    made = getattr(ms_nn, optimizer)(net.trainable_params(), **more)
    mindspore.save_checkpoint(
        ms_nn.TrainOneStepCell(ms_nn.WithLossCell(net, ms_nn.MSELoss()), made), str(tmp_path / "training.ckpt")
    )
    with open_weights(tmp_path / "training.ckpt") as found:
        comparison = compare_weights(found, found, Mappings())
    assert [row.name for row in comparison.rows] == ["0.weight", "0.bias", "1.gamma", "1.beta"]


def test_a_cast_is_no_difference_but_is_said(files: Path, run: Any) -> None:
    status, text = run(files / "bf16.safetensors", files / "net.ckpt", "--exit-code")
    assert status == 0
    assert "9 parameters compared: 9 equal when cast" in text
    assert "CONSISTENT: all parameters are equal, but for the rounding of a cast" in text


def test_a_mask_of_one_side_alone_is_no_missing_parameter(tmp_path: Path, run: Any) -> None:
    more = {"backbone.mask": torch.ones(4, 4).tril()}
    status, text = run(saved(tmp_path, "a.pt", state() | more), saved(tmp_path, "b.pt", state()), "--exit-code")
    assert status == 0, text
    assert "CONSISTENT: all parameters are equal\n" in text
    assert "buffers of one side alone, no parameters (1): backbone.mask\n" in text


def test_equal_parameters_under_other_names_are_consistent_and_named(tmp_path: Path, run: Any) -> None:
    other = {("zeta" if name == "fc.weight" else name): tensor for name, tensor in state().items()}
    status, text = run(saved(tmp_path, "a.pt", state()), saved(tmp_path, "b.pt", other), "--exit-code")
    assert status == 0
    assert "CONSISTENT: all parameters are equal; 1 parameter has another name in the golden\n" in text
    assert "equal under another name (1): fc.weight = zeta\n" in text
    (mapping,) = (tmp_path / "out").glob("data_mapping_*.yaml")
    assert f"-dm {mapping}\n" in text
    status, text = run(tmp_path / "a.pt", tmp_path / "b.pt", "--exit-code", "-dm", str(mapping))
    assert status == 0 and "CONSISTENT: all parameters are equal\n" in text


def test_another_name_does_not_excuse_a_parameter_that_is_missing_or_differs(tmp_path: Path, run: Any) -> None:
    other = {("zeta" if name == "fc.weight" else name): tensor for name, tensor in state().items()}
    bias = other.pop("fc.bias")
    status, text = run(saved(tmp_path, "a.pt", state()), saved(tmp_path, "b.pt", other), "--exit-code")
    assert status == 1
    assert "DIVERGENT: 1 parameter of the target has no counterpart; what was compared agrees\n" in text
    assert "equal under another name (1): fc.weight = zeta\n" in text
    status, text = run(tmp_path / "a.pt", saved(tmp_path, "c.pt", other | {"fc.bias": bias + 1}), "--exit-code")
    assert status == 1 and "DIVERGENT: 1 of " in text


def test_bfloat16_of_mindspore_and_of_safetensors_are_the_same_numbers(tmp_path: Path, run: Any) -> None:
    values = torch.linspace(-3, 3, 64).reshape(8, 8).to(torch.bfloat16)
    save_file({"fc.weight": values}, tmp_path / "a.safetensors")
    tensor = mindspore.Tensor(values.float().numpy(), mindspore.bfloat16)
    mindspore.save_checkpoint([{"name": "fc.weight", "data": tensor}], str(tmp_path / "b.ckpt"))
    assert "1 parameter compared: 1 equal\n" in run(tmp_path / "a.safetensors", tmp_path / "b.ckpt")[1]
    for name in ("a.safetensors", "b.ckpt"):
        with open_weights(tmp_path / name) as found:
            np.testing.assert_array_equal(found.weights["fc.weight"].load(), values.float().numpy())
            assert found.weights["fc.weight"].dtype == "bfloat16"


@pytest.mark.parametrize(
    "dtype",
    ["float16", "float64", "int8", "uint8", "int32", "int64", "bool", "complex64", "float8_e4m3fn", "float8_e5m2"],
)
def test_dtypes_of_safetensors_and_of_torch(dtype: str, tmp_path: Path) -> None:
    values = torch.arange(-3, 9).reshape(3, 4).to(getattr(torch, dtype))
    wide = values.float() if dtype.startswith("float8") else values
    save_file({"w": values, "scalar": values[0, 0].clone(), "empty": values[:0].clone()}, tmp_path / "a.safetensors")
    torch.save({"w": values, "scalar": values[0, 0].clone(), "empty": values[:0].clone()}, tmp_path / "a.pt")
    for name in ("a.safetensors", "a.pt"):
        with open_weights(tmp_path / name) as found:
            assert {each.dtype for each in found.weights.values()} == {dtype}
            np.testing.assert_array_equal(found.weights["w"].load(), wide.numpy())
            np.testing.assert_array_equal(found.weights["scalar"].load(), wide[0, 0].numpy())
            assert found.weights["empty"].load().shape == (0, 4)


def test_what_differs_is_named_first_furthest_and_why(files: Path, tmp_path: Path, run: Any) -> None:
    changed = state()
    changed["fc.weight"] = changed["fc.weight"].T.contiguous()
    changed["norm.weight"] = changed["norm.weight"] * 3
    changed["bn.bias"] = torch.zeros(9)
    changed["fc.bias"][3] += 1e-3
    changed["surplus"] = torch.zeros(3)
    del changed["bn.running_mean"]
    target = saved(tmp_path, "changed.pt", {"state_dict": changed})
    status, text = run(target, files / "net.ckpt", "--exit-code")
    assert status == 1
    lines = text.splitlines()
    assert lines[2] == "8 parameters compared: 4 equal, 3 differing, 1 of other shape"
    assert lines[3] == "DIVERGENT: 4 of 8 parameters differ; the first is"
    assert lines[4].startswith("  fc.weight: deviates by 0.") and lines[4].endswith("; equal when transposed")
    assert lines[5] == "the furthest apart"
    assert lines[6] == "  bn.bias (golden: bn.beta): shape [9] against [8]"
    deviates = "deviates by 2 times its size (tolerance 1.19e-07); the target is 3 × the golden"
    assert f"  norm.weight (golden: norm.gamma): {deviates}" in lines
    assert lines[4] in lines[7:9]
    assert lines[9].startswith("  fc.bias: deviates by 0.000")
    assert "only in the target (1): surplus" in lines
    assert "only in the golden (1): bn.moving_mean" in lines
    (table,) = (tmp_path / "out").glob("compare_weights_*.xlsx")
    sheet = openpyxl.load_workbook(table).active
    head, *rows = sheet.iter_rows(values_only=True)
    by_name = {row[0] or row[1]: dict(zip(head, row, strict=True)) for row in rows}
    assert len(by_name) == 11
    assert by_name["fc.weight"]["Result"] == "differs" and by_name["fc.weight"]["Note"] == "equal when transposed"
    assert by_name["bn.bias"]["Target Shape"] == "[9]" and by_name["bn.bias"]["Result"] == "shape differs"
    assert by_name["head.weight"]["Result"] == "tied"
    assert by_name["embed.weight"]["Golden Name"] == "embed.embedding_table"
    assert by_name["embed.weight"]["Cosine"] == pytest.approx(1) and by_name["embed.weight"]["Deviation"] == 0
    mine, theirs = (np.float64(each["norm.weight"].numpy()) for each in (changed, state()))
    assert by_name["norm.weight"]["MaxAbsErr"] == pytest.approx(np.abs(mine - theirs).max())
    assert by_name["norm.weight"]["EucDist"] == pytest.approx(np.linalg.norm(mine - theirs))
    colours = {row[0].value: row[0].fill.fgColor.rgb[-6:] for row in sheet.iter_rows() if row[0].fill.patternType}
    assert colours == dict.fromkeys(["fc.weight", "norm.weight", "bn.bias", "fc.bias", "surplus", None], "FF9C9C")


def test_without_exit_code_a_difference_is_no_error_and_csv_is_a_table(files: Path, tmp_path: Path, run: Any) -> None:
    changed = state()
    changed["norm.bias"] += 1
    assert run(saved(tmp_path, "changed.pt", changed), files / "net.npz", "--csv")[0] == 0
    (table,) = (tmp_path / "out").glob("compare_weights_*.csv")
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["Target Name"] for row in rows if row["Result"] == "differs"] == ["norm.bias"]
    assert next(row for row in rows if row["Result"] == "differs")["Note"] == "the target is the golden + 1 everywhere"


def test_one_rounding_is_close_and_a_nan_is_not(tmp_path: Path, run: Any) -> None:
    values = torch.rand(100, dtype=torch.float32) + 0.5
    golden = saved(tmp_path, "golden.pt", {"w": values})
    noisy = saved(tmp_path, "noisy.pt", {"w": torch.nextafter(values, torch.tensor(2.0))})
    status, text = run(noisy, golden, "--exit-code")
    assert status == 0 and "1 within one rounding" in text
    assert "CONSISTENT: no parameter differs by more than one rounding" in text
    assert run(saved(tmp_path, "scaled.pt", {"w": values * (1 + 1e-6)}), golden, "--exit-code")[0] == 1
    # Between dtypes no number may be off by more than the cast explains.
    halves = saved(tmp_path, "halves.pt", {"w": values.to(torch.bfloat16)})
    assert run(halves, golden, "--exit-code")[0] == 0
    assert run(saved(tmp_path, "wrong.pt", {"w": (values * 1.01).to(torch.bfloat16)}), golden, "--exit-code")[0] == 1
    values[3] = float("nan")
    assert run(saved(tmp_path, "nan.pt", {"w": values}), golden, "--exit-code")[0] == 1


@pytest.mark.parametrize(
    ("flag", "rules"),
    [
        ("-lm", "TopLayer:\n  encoder: body\nBlock:\n  attention.out: self_attention.proj\n  mlp: ffn\n"),
        ("-cm", "encoder: body\nattention.out: self_attention.proj\nmlp.Dense: ffn.Linear\n"),
        ("-dm", "encoder.0.attention.out.weight: body.0.self_attention.proj.weight\n"
                "encoder.0.mlp.bias: body.0.ffn.bias\nencoder.1.mlp.bias: body.1.ffn.bias\n"),
    ],
)  # fmt: skip
def test_mappings_say_which_is_which(flag: str, rules: str, tmp_path: Path, run: Any) -> None:
    values = [torch.rand(3, 3), torch.rand(3), torch.rand(3)]
    ours = ("encoder.0.attention.out.weight", "encoder.0.mlp.bias", "encoder.1.mlp.bias")
    theirs = ("body.0.self_attention.proj.weight", "body.0.ffn.bias", "body.1.ffn.bias")
    target = saved(tmp_path, "target.pt", dict(zip(ours, values, strict=True)))
    golden = saved(tmp_path, "golden.pt", dict(zip(theirs, values, strict=True)))
    status, text = run(target, golden, "--exit-code")
    assert status == 0 and "3 parameters compared: 3 equal under another name" in text
    other = saved(tmp_path, "other.pt", dict(zip(theirs, (value + 1 for value in values), strict=True)))
    status, text = run(target, other, "--exit-code")
    assert status == 1 and "no parameter of one has a counterpart" in text
    (tmp_path / "rules.yaml").write_text(rules)
    status, text = run(target, golden, "--exit-code", flag, str(tmp_path / "rules.yaml"))
    assert status == 0 and "3 parameters compared: 3 equal" in text


def test_a_layer_mapping_cannot_be_found_in_weights(files: Path, run: Any) -> None:
    status, text = run(files / "net.ckpt", files / "net.pt", "-lm")
    assert status == 2 and text.startswith("msprobe: compare_weights: -lm needs a file: ") and text.count("\n") == 1


def test_shards_of_one_model_are_one_model(files: Path, tmp_path: Path, run: Any) -> None:
    tensors = load_file(files / "net.safetensors")
    names = sorted(tensors)
    weight_map = {}
    for number, part in enumerate((names[:4], names[4:]), 1):
        file = f"model-{number:05}-of-00002.safetensors"
        save_file({name: tensors[name] for name in part}, tmp_path / file)
        weight_map |= dict.fromkeys(part, file)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    (tmp_path / "training_args.bin").write_bytes(b"something else")
    status, text = run(tmp_path, files / "net.ckpt", "--exit-code")
    assert status == 0 and "(safetensors, 2 files): 9 parameters" in text
    # Without the index, all files of the kind.
    index.unlink()
    assert run(tmp_path, files / "net.ckpt", "--exit-code")[0] == 0
    # A shard that is gone costs its own parameters.
    index.write_text(json.dumps({"weight_map": weight_map}))
    (tmp_path / "model-00002-of-00002.safetensors").unlink()
    status, text = run(tmp_path, files / "net.ckpt", "--exit-code")
    assert status == 2 and "9 parameters compared: 3 equal, 6 not compared" in text
    assert "model-00002-of-00002.safetensors: no such" in text


def test_an_index_names_files_beside_it_alone(files: Path, tmp_path: Path, run: Any) -> None:
    (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": {"w": "../weights/net.safetensors"}}')
    status, text = run(tmp_path, files / "net.ckpt")
    assert status == 2 and "accepted are names of files beside it" in text


def test_several_checkpoints_in_a_folder_ask_for_one(files: Path, tmp_path: Path, run: Any) -> None:
    for name in ("net-1_10.ckpt", "net-2_10.ckpt"):
        (tmp_path / name).write_bytes((files / "net.ckpt").read_bytes())
    status, text = run(tmp_path, files / "net.ckpt")
    assert status == 2 and "is in net-1_10.ckpt and in net-2_10.ckpt: these are several checkpoints" in text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("AES-GCM.ckpt", "encrypted by MindSpore (enc_key): load it there with its dec_key and save it without"),
        ("AES-CBC.ckpt", "encrypted by MindSpore (enc_key)"),
        ("empty", "empty"),
        ("text", "begins like no file of weights; accepted are .ckpt of MindSpore, .safetensors, .pt"),
        ("legacy.pt", "saved in the format of torch before 1.6"),
        ("nowhere", "no such file"),
        ("folder", "no file of weights in it; accepted are"),
    ],
)
def test_what_cannot_be_read_is_one_line(name: str, text: str, files: Path, run: Any) -> None:
    (files / "empty").touch()
    (files / "text").write_text("no weights")
    (files / "folder").mkdir(exist_ok=True)
    torch.save(state(), files / "legacy.pt", _use_new_zipfile_serialization=False)
    status, printed = run(files / name, files / "net.ckpt")
    assert status == 2 and printed.count("\n") == 1
    assert printed.startswith(f"msprobe: {files / name}") and text in printed


@pytest.mark.parametrize("name", ["net.ckpt", "net.safetensors"])
def test_a_file_cut_off_costs_what_was_cut_off(name: str, files: Path, tmp_path: Path, run: Any) -> None:
    whole = (files / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: len(whole) - 40])
    status, text = run(tmp_path / name, files / "net.npz")
    assert status == 2 and ("cut off" in text or "damaged at byte" in text)
    (table,) = (tmp_path / "out").glob("*.xlsx")
    results = [row[2] for row in openpyxl.load_workbook(table).active.iter_rows(values_only=True)]
    assert results.count("equal") >= 6


@pytest.mark.parametrize("share", [0.2, 0.6])
def test_what_is_behind_the_end_of_a_cut_checkpoint_is_not_told_as_missing(
    share: float, files: Path, tmp_path: Path, run: Any
) -> None:
    """Wherever it was cut off: inside the numbers of a parameter, say."""
    whole = (files / "net.ckpt").read_bytes()
    (tmp_path / "net.ckpt").write_bytes(whole[: int(len(whole) * share)])
    for target, golden, side in (("net.ckpt", files / "net.npz", "target"), (files / "net.npz", "net.ckpt", "golden")):
        status, text = run(tmp_path / target, tmp_path / golden)
        assert status == 2 and "DIVERGENT" not in text
        assert f"INCOMPLETE: what was read agrees; the {side} is damaged, and what it lacks may be lost" in text
        assert f"{tmp_path / 'net.ckpt'}: cut off at byte {int(len(whole) * share)}: nothing behind" in text


def test_a_damaged_record_costs_its_own_parameter(files: Path, tmp_path: Path, run: Any) -> None:
    whole = bytearray((files / "net.pt").read_bytes())
    place = whole.find(state()["fc.weight"].numpy().tobytes())
    whole[place] ^= 0xFF
    (tmp_path / "net.pt").write_bytes(whole)
    status, text = run(tmp_path / "net.pt", files / "net.ckpt")
    assert status == 2 and "9 parameters compared: 8 equal, 1 not compared" in text
    assert "damaged: its checksum does not fit" in text


def test_a_tensor_of_another_kind_costs_itself_and_is_told(files: Path, tmp_path: Path, run: Any) -> None:
    """A sparse and a quantized tensor, and one wrapped in a class of the user's own."""
    sparse = torch.eye(3).to_sparse()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantized = torch.quantize_per_tensor(torch.rand(4), 0.1, 0, torch.qint8)
    target = saved(tmp_path, "a.pt", {"sparse": sparse, "quantized": quantized, "own": _Own(torch.ones(2)), **state()})
    plain = {name: torch.ones(2) for name in ("sparse", "quantized", "own")}
    status, text = run(target, saved(tmp_path, "b.pt", plain | state()))
    assert status == 2 and "13 parameters compared: 10 equal, 3 not compared" in text
    with open_weights(target) as found:
        for name, by in (("sparse", "torch._utils._rebuild_sparse_tensor"), ("quantized", "torch."), ("own", "_Own")):
            with pytest.raises(DumpFormatError, match=rf"a\.pt: {name}: made by .*{by}"):
                found.weights[name].load()
    # Nothing is left out in silence, beside a tensor that is read or not.
    assert list(found.weights)[:3] == ["sparse", "quantized", "own"]


def test_a_name_that_is_there_twice_is_told(tmp_path: Path, run: Any) -> None:
    """In every format; nested and flat names of PyTorch meet, and unprintable ones."""
    one, other = torch.ones(2), torch.zeros(2)
    saved(tmp_path, "golden.pt", {"a.b": one})
    saved(tmp_path, "nested.pt", {"a.b": one, "a": {"b": other}})
    save_file({"a\x01": one, "a\x02": other}, tmp_path / "clean.safetensors")
    parts = [{"name": name, "data": mindspore.Tensor(values.numpy())} for name, values in
             (("a.b", one), ("c", one), ("a.c", other))]  # fmt: skip
    mindspore.save_checkpoint(parts, str(tmp_path / "apart.ckpt"))
    (tmp_path / "apart.ckpt").write_bytes((tmp_path / "apart.ckpt").read_bytes().replace(b"a.c", b"a.b"))
    np.savez(tmp_path / "twice.npz", **{"a.b": one.numpy(), "a.c": other.numpy()})
    (tmp_path / "twice.npz").write_bytes((tmp_path / "twice.npz").read_bytes().replace(b"a.c", b"a.b"))
    for name, twice in (("nested.pt", "a.b"), ("clean.safetensors", "a_"), ("apart.ckpt", "a.b"), ("twice.npz", "a.b")):
        status, text = run(tmp_path / name, tmp_path / "golden.pt")
        assert f"{name}: {twice}: the name is there twice; the first was compared" in text, name
        assert status == 2
        with open_weights(tmp_path / name) as found:
            np.testing.assert_array_equal(found.weights[twice].load(), one.numpy())


def test_shapes_that_no_array_has_cost_themselves(tmp_path: Path) -> None:
    """Sizes beyond what numpy counts, and more dimensions than it has, where there are no numbers at all."""
    for name, shape in (("big", [0, 10**18, 10**19]), ("many", [0] * 65)):
        header = json.dumps({"w": {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}}).encode()
        (tmp_path / name).write_bytes(len(header).to_bytes(8, "little") + header)
        with open_weights(tmp_path / name) as found, pytest.raises(DumpFormatError, match=f"{name}: w: .*no shape"):
            found.weights["w"].load()
    dims = b"\0" * 100_000
    sizes = [(len(dims) >> shift & 0x7F) | (0x80 if shift < 14 else 0) for shift in (0, 7, 14)]
    tensor = b"\x0a" + bytes(sizes) + dims
    length = len(tensor)
    value = b"\x0a\x01w\x12" + bytes([length & 0x7F | 0x80, length >> 7 & 0x7F | 0x80, length >> 14]) + tensor
    length = len(value)
    whole = b"\x0a" + bytes([length & 0x7F | 0x80, length >> 7 & 0x7F | 0x80, length >> 14]) + value
    (tmp_path / "packed.ckpt").write_bytes(whole)
    with pytest.raises(DumpFormatError, match="not a checkpoint of MindSpore: byte"):
        open_weights(tmp_path / "packed.ckpt")


def test_a_header_of_gigabytes_is_not_read(tmp_path: Path) -> None:
    """A .npy header of 64 MiB of blanks, deflated to 64 KiB."""
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive, archive.open("w.npy", "w") as file:
        file.write(b"\x93NUMPY\x02\x00" + (64 << 20).to_bytes(4, "little"))
        for _ in range(64):
            file.write(b" " * (1 << 20))
    tracemalloc.start()
    with open_weights(tmp_path / "a.npz") as found:
        assert found.problems == [f"{tmp_path / 'a.npz'}: w.npy: its header is too long"]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 << 20


def test_infinities_of_both_sides_make_no_noise(tmp_path: Path) -> None:
    from msprobe_ms.comparison.pairing.rules.files import Mappings
    from msprobe_ms.weights.compare import compare_weights

    values = torch.tensor([1.5, float("inf"), float("-inf"), 1.0 + 2**-12])
    both = saved(tmp_path, "a.pt", {"w": values}), saved(tmp_path, "b.pt", {"w": values.half()})
    with warnings.catch_warnings(), open_weights(both[0]) as target, open_weights(both[1]) as golden:
        warnings.simplefilter("error")
        (row,) = compare_weights(target, golden, Mappings()).rows
    assert row.result == "equal when cast"


class _Own:
    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def __reduce__(self) -> tuple[object, ...]:
        return _Own, (self.tensor,)


def test_tensors_of_an_npu_are_read(tmp_path: Path) -> None:
    """torch_npu names a function of its own, whose arguments begin as those of torch's."""
    values = torch.arange(6.0).reshape(2, 3)
    torch.save({"w": values}, tmp_path / "cpu.pt")
    with zipfile.ZipFile(tmp_path / "cpu.pt") as cpu, zipfile.ZipFile(tmp_path / "npu.pt", "w") as npu:
        for name in cpu.namelist():
            data = cpu.read(name)
            if name.endswith("data.pkl"):
                ours = b"ctorch._utils\n_rebuild_tensor_v2\n"
                assert ours in data and data.count(b"tq\x0cR") == 1
                data = data.replace(ours, b"ctorch_npu.utils.storage\n_rebuild_npu_tensor\n")
                data = data.replace(b"tq\x0cR", b"K\x02tq\x0cR")  # the layout
            npu.writestr(name, data)
    with open_weights(tmp_path / "npu.pt") as found:
        np.testing.assert_array_equal(found.weights["w"].load(), values.numpy())


class _Trap:
    def __reduce__(self) -> tuple[object, ...]:
        import os

        return os.mkdir, (str(_Trap.folder),)

    folder = Path()


def test_nothing_in_a_file_is_executed(files: Path, tmp_path: Path, run: Any) -> None:
    _Trap.folder = tmp_path / "executed"
    target = saved(tmp_path, "trap.pt", {"trap": _Trap(), "model": state()})
    status, text = run(target, files / "net.ckpt")
    assert status == 0 and "9 parameters compared: 9 equal" in text
    assert not _Trap.folder.exists()


def test_a_hostile_pickle_takes_neither_stack_nor_time(tmp_path: Path) -> None:
    """Strangers inside one another 50,000 deep, a ring, and a tree of 2^60 leaves made of 60 dicts."""
    from time import thread_time

    module = b"ctorch.nn\nLinear\n)\x81"  # a class of no interest, made anew
    deep = b"".join(b"}X\x08\x00\x00\x00_modules" + module for _ in range(50_000)) + b"}" + b"sb" * 50_000
    ring = b"}q\x00X\x01\x00\x00\x00ah\x00s"
    tree = b"}q\x01" + b"".join(
        b"}q%cX\x01\x00\x00\x00ah%csX\x01\x00\x00\x00bh%cs" % (i + 1, i, i) for i in range(1, 61)
    )
    for name, program in (("deep", module + deep), ("ring", ring), ("tree", tree)):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("a/data.pkl", b"\x80\x02" + program + b".")
        started = thread_time()
        with open_weights(tmp_path / name) as found:
            assert found.weights == {}
        assert thread_time() - started < 5


def test_neither_framework_is_imported(files: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from msprobe_ms.cli import main; "
        "status = main(['compare_weights', *sys.argv[1:]]); "
        "assert not {'mindspore', 'torch', 'safetensors'} & set(sys.modules); sys.exit(status)"
    )
    both = [str(files / "net.ckpt"), str(files / "net.pt")]
    done = subprocess.run([sys.executable, "-c", code, *both, "-o", str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_one_pair_is_in_memory_at_a_time(tmp_path: Path, run: Any) -> None:
    """Forty tensors of 1 MB a side; a pair and what measuring it takes are some."""
    tensors = {f"layers.{number}.weight": torch.rand(512, 512) for number in range(40)}
    save_file(tensors, tmp_path / "a.safetensors")
    mindspore.save_checkpoint(
        [{"name": name, "data": mindspore.Tensor(tensor.numpy())} for name, tensor in tensors.items()],
        str(tmp_path / "b.ckpt"),
    )
    torch.save(tensors, tmp_path / "c.pt")
    for golden in ("b.ckpt", "c.pt"):
        run(tmp_path / "a.safetensors", tmp_path / golden)  # imports
        tracemalloc.start()
        status, _ = run(tmp_path / "a.safetensors", tmp_path / golden, "--exit-code")
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert status == 0 and peak < 12 << 20


@pytest.mark.parametrize("name", ["net.ckpt", "net.safetensors", "net.pt", "net.npz"])
def test_any_damage_is_an_error_of_ours_or_none(name: str, files: Path, tmp_path: Path) -> None:
    """Bytes changed, cut out and cut off at random: read what can be, never raise anything else."""
    whole = (files / name).read_bytes()
    chance = np.random.default_rng(7)
    for _ in range(150):
        damaged = bytearray(whole)
        for _ in range(chance.integers(1, 4)):
            damaged[int(chance.integers(0, min(len(damaged), 3000)))] = int(chance.integers(0, 256))
        if chance.random() < 0.3:
            damaged = damaged[: chance.integers(1, len(damaged))]
        (tmp_path / "damaged").write_bytes(damaged)
        for error in _errors_of(tmp_path / "damaged"):
            assert str(error).startswith(str(tmp_path / "damaged"))


def _errors_of(path: Path) -> list[DumpFormatError]:
    """Read all that can be; what is said of the rest."""
    try:
        found = open_weights(path)
    except DumpFormatError as error:
        return [error]
    errors = []
    with found:
        for weight in found.weights.values():
            try:
                weight.load()
            except DumpFormatError as error:
                errors.append(error)
    return errors
