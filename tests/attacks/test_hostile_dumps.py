"""No trust in files (invariant 8): dumps from elsewhere run nothing, take no more than their size, end in one error."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import struct
import subprocess
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from msprobe_ms.arrays.torch_file import load_tensor
from msprobe_ms.dump.reading.reader import find_dumps, read_dump
from msprobe_ms.support.errors import DumpFormatError


def archive(path: Path, description: bytes, numbers: bytes = bytes(16)) -> Path:
    """A torch archive with ``description`` as its pickle."""
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("a/data.pkl", description)
        file.writestr("a/data/0", numbers)
    return path


class Call:
    """Pickles into a call of ``function`` with ``arguments``."""

    def __init__(self, function: Callable, *arguments: object) -> None:
        self.reduced = (function, arguments)

    def __reduce__(self) -> tuple:
        return self.reduced


TOUCH = "touch executed"
TENSOR = (
    b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\n"
    b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQK\x00K\x04\x85K\x01\x85\x89%stR."
)
#: Ways to make an unpickler run a command; the last ones hide it where a reader of tensors never looks.
COMMANDS = {
    "reduce": pickle.dumps(Call(os.system, TOUCH), 2),
    "stack global": pickle.dumps(Call(os.system, TOUCH), 4),
    "eval": pickle.dumps(Call(eval, f"__import__('os').system({TOUCH!r})"), 2),
    "subprocess": pickle.dumps(Call(subprocess.getoutput, TOUCH), 2),
    "instance": b"(S'touch executed'\nios\nsystem\n.",
    "object": b"(csubprocess\nPopen\n(lS'touch'\naS'executed'\nao.",
    "new object": b"\x80\x02csubprocess\nPopen\n)\x81X\x04\x00\x00\x00none0csubprocess\ngetoutput\n"
    b"X\x0e\x00\x00\x00touch executed\x85R.",
    "in hooks": TENSOR % pickle.dumps(Call(os.system, TOUCH), 2)[2:-1],
    "before the tensor": pickle.dumps(Call(os.system, TOUCH), 2)[:-1] + TENSOR[2:] % b"}",
}


@pytest.mark.parametrize("description", COMMANDS.values(), ids=COMMANDS)
def test_pickles_run_nothing(description: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = archive(tmp_path / "a.pt", description)
    with pytest.raises(DumpFormatError) as caught:
        load_tensor(path)
    assert str(caught.value).startswith(f"{path}: record data.pkl: ")
    time.sleep(0.05)
    assert not (tmp_path / "executed").exists()


class Obedient(pickle.Unpickler):
    """An unpickler as torch's was: it does what it reads."""

    def persistent_load(self, identity: object) -> object:
        return identity


@pytest.mark.parametrize("description", COMMANDS.values(), ids=COMMANDS)
def test_the_attacks_are_real(description: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with contextlib.suppress(Exception):  # some end in an error once the command has run
        Obedient(io.BytesIO(description)).load()
    for _ in range(100):
        if (tmp_path / "executed").exists():
            return
        time.sleep(0.05)
    pytest.fail("nothing ran: the attack tests nothing")


def test_the_tensor_around_an_attack_is_sound(tmp_path: Path) -> None:
    assert load_tensor(archive(tmp_path / "a.pt", TENSOR % b"}")).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    "description",
    [
        pytest.param(b"(" * 60_000 + b".", id="marks"),
        pytest.param(b"\x80\x02]" + b"\x85" * 60_000 + b".", id="deep tuple"),
        pytest.param(b"\x80\x02)" + b"2\x86" * 30_000 + b".", id="tuple of twins"),
        pytest.param(b"\x80\x02)" + b"q\x00h\x00h\x00\x86" * 11_000 + b".", id="remembered twins"),
        pytest.param(b"\x80\x02}" + b")" + b"q\x00h\x00h\x00\x86" * 60 + b"Ns.", id="twins as a key"),
        pytest.param(b"\x80\x02Nr\xff\xff\xff\xff.", id="far memory"),
        pytest.param(b"\x80\x02\x8b\xff\xff\xff\x7f.", id="long integer"),
        pytest.param(b"\x80\x02X\xff\xff\xff\xff.", id="long text"),
        pytest.param(b"\x80\x04\x8d" + b"\xff" * 8 + b".", id="longer text"),
        pytest.param(b"\x80\x02" + b"ctorch._tensor\n_rebuild_from_type_v2\n(" * 1_500 + b".", id="unfinished calls"),
        pytest.param(b"\x80\x02\x82\x01.", id="extension"),
        pytest.param(b"\x80\x04\x8c\x05torch\x8c\x10serialization.os\x93.", id="dotted name"),
        pytest.param(b"\x80\x02K\x01)R.", id="call of a number"),
        pytest.param(TENSOR.replace(b"((X", b"(K\x01(X") % b"}", id="storage that is none"),
        pytest.param(b"I" + b"9" * 5000 + b"\n.", id="decimal"),
        pytest.param(bytes(2 << 20), id="too long"),
    ],
)
def test_pickles_that_would_exhaust_an_unpickler(description: bytes, tmp_path: Path) -> None:
    path = archive(tmp_path / "a.pt", description)
    tracemalloc.start()
    start = time.process_time()
    try:
        with pytest.raises(DumpFormatError, match=r"a\.pt: record '?data\.pkl'?: "):
            load_tensor(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 32 << 20
    assert time.process_time() - start < 20


def patched(path: Path, field: int, value: int) -> Path:
    """The archive with a 4-byte field of the first entry of its directory replaced; see APPNOTE 4.3.12."""
    raw = bytearray(path.read_bytes())
    struct.pack_into("<I", raw, raw.index(b"PK\x01\x02") + field, value)
    path.write_bytes(raw)
    return path


@pytest.mark.parametrize("field", [20, 24, 42], ids=["compressed size", "size", "offset"])
@pytest.mark.parametrize("value", [0, 1 << 20, 0x7FFFFFFF, 0xFFFFFFFE, 0xFFFFFFFF])
def test_archives_that_lie_about_sizes(field: int, value: int, tmp_path: Path) -> None:
    torch.save(torch.arange(8.0), tmp_path / "a.pt")
    path = patched(tmp_path / "a.pt", field, value)
    tracemalloc.start()
    try:
        assert load_tensor(path).tolist() == list(range(8))
    except DumpFormatError as error:
        assert str(error).startswith(str(path))  # noqa: PT017 - both ends are right, nothing else is
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 16 << 20


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(zipfile.ZipInfo("a/data.pkl"), TENSOR % b"}")
        file.writestr("a/data/0", bytes(64 << 20))
    assert path.stat().st_size < 1 << 20
    tracemalloc.start()
    try:
        with pytest.raises(DumpFormatError, match=r"record 'data/0': compressed or encrypted"):
            load_tensor(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 16 << 20


def test_a_dump_cannot_read_outside_its_folder(tmp_path: Path) -> None:
    (tmp_path / "rank0" / "dump_tensor_data").mkdir(parents=True)
    torch.save(torch.ones(1), tmp_path / "secret.pt")
    (tmp_path / "rank0" / "dump_tensor_data" / "link.pt").symlink_to(tmp_path / "secret.pt")
    leaf = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [1]}
    names = ["../../secret.pt", str(tmp_path / "secret.pt"), "link.pt", "..", "a/../../../secret.pt"]
    data = {"Torch.f.0.forward": {"output": [{**leaf, "data_name": name} for name in names]}}
    (tmp_path / "rank0" / "dump.json").write_text(json.dumps({"task": "tensor", "data": data}))
    dump = read_dump(tmp_path / "rank0")
    for item in dump.entries["Torch.f.0.forward"].items:
        with pytest.raises(DumpFormatError, match=r"Torch\.f\.0\.forward\.output\.\d: data_name .*(accepted|leaves)"):
            dump.tensors.load(item)


def test_a_folder_that_holds_itself_ends(tmp_path: Path) -> None:
    (tmp_path / "step0").symlink_to(tmp_path)
    with pytest.raises(DumpFormatError):
        find_dumps(tmp_path)
