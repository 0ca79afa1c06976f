"""What once worked against tools that read such files: contents by form, and what may lie in a file's place."""

from __future__ import annotations

import io
import itertools
import json
import os
import struct
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from tests.attacks import sound
from tests.device_files import Tensor, device_file

#: An attack's file, or what makes it where that takes long: every process that runs tests reads this module.
Content = bytes | Callable[[], bytes]


def made(content: Content) -> bytes:
    """Return the bytes of an attack's file."""
    return content() if callable(content) else content


#: Run where it can be seen.
TOUCH = "touch executed"

ESCAPES = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x9b31m\x7f\r\b\u202egpj.exe\u2066\u2028\u2029\u200b\nmsprobe: all is well"

_DEEP = 1_000_000
_DIGITS = "9" * 100_000


def _json_dump(name: str = "Cell.fc1.Dense.forward.0", **leaf: object) -> bytes:
    content = sound.dump_json(names=(name,))
    content["data"][name]["input_args"][0].update(leaf)
    return json.dumps(content).encode()


def _in_leaf(text: str) -> bytes:
    """A dump with ``text`` as the value of a leaf."""
    return _json_dump(value="HERE").replace(b'"HERE"', text.encode())


def _long_sizes(count: int) -> bytes:
    """A shape as JSON whose sizes have 4001 digits each; as numbers they would take a second to write."""
    return f"[{', '.join(['1' + '0' * 4000] * count)}]".encode()


_LAUGHS = "".join(
    f"{name}: &{name} [{', '.join([f'*{below}'] * 9)}]\n" for below, name in itertools.pairwise("abcdefghij")
)
_MERGES = "a: &a {k: v}\n" + "".join(
    f"{name}: &{name} {{<<: [{', '.join([f'*{below}'] * 9)}]}}\n" for below, name in itertools.pairwise("abcdefghij")
)

JSON: dict[str, bytes] = {
    "empty": b"",
    "null": b"null",
    "a number": b"1",
    "a list": b"[]",
    "cut off": b'{"task": "tensor", "data": {"Cell.a.B.forward.0": {"inp',
    "not text": bytes(range(256)) * 40,
    "UTF-16": json.dumps({"data": {}}).encode("utf-16"),
    "nothing but NUL": bytes(1 << 16),
    "deep lists": b"[" * _DEEP,
    "deep lists, closed": b"[" * _DEEP + b"]" * _DEEP,
    "deep objects": b'{"data":' * _DEEP,
    "deep lists in an entry": b'{"data": {"Cell.a.B.forward.0": {"input_args": ' + b"[" * _DEEP + b"]" * _DEEP + b"}}}",
    "deep lists in a leaf": _in_leaf("[" * 5000 + "]" * 5000),
    "deep lists for an entry": b'{"Cell.fc1.Dense.forward.0": ' + b"[" * _DEEP + b"]" * _DEEP + b"}",
    "duplicate keys": b'{"task": "tensor", "data": {}, "data": {"Cell.a.B.forward.0": {}}, "task": 5, "data": []}',
    "many duplicate keys": b'{"data": {' + b'"a": {}, ' * 50_000 + b'"a": {}}}',
    "huge integer": _in_leaf(_DIGITS),
    "huge negative integer": _in_leaf("-" + _DIGITS),
    "huge integer alone": f'{{"task": "tensor", "rank_id": [{_DIGITS}], "data": {_DIGITS}}}'.encode(),
    "huge float": _in_leaf(f"1e{_DIGITS}"),
    "huge fraction": _in_leaf(f"0.{_DIGITS}"),
    "only NaN": _json_dump(Max=float("nan"), Min=float("nan"), Mean=float("nan"), Norm=float("nan")),
    "figures that are none": _json_dump(Max=[1], Min={"a": 1}, Mean="1", Norm=None),
    "figures beyond floats": _json_dump(Max=10**400, Min=-(10**400), Mean=10**4000, Norm=True),
    "negative shape": _json_dump(shape=[-3, 4]),
    "gigantic shape": _json_dump(shape=[2**62, 2**62, 2**62]),
    "shape of a million axes": _json_dump(shape=[2] * 1_000_000),
    "shape of huge sizes": _json_dump(shape="HERE").replace(b'"HERE"', _long_sizes(2000)),
    "shape of texts": _json_dump(shape=["3", None, [4]]),
    "dtype that is none": _json_dump(dtype={"a": [1]}),
    "type of a megabyte": _json_dump(type="T" * 1_000_000),
    "name of a megabyte": _json_dump("Cell." + "a" * 1_000_000 + ".forward.0"),
    "name of a million dots": _json_dump("Cell" + "." * 1_000_000 + "forward.0"),
    "name with a huge number": _json_dump(f"Cell.a.B.forward.{_DIGITS}"),
    "name of numerals": _json_dump("Cell.a.B.forward.²"),
    "name of other numerals": _json_dump("Cell.a.B.forward.٣"),
    "empty name": _json_dump(""),
    "escapes in a name": _json_dump(f"Cell.{ESCAPES}.Dense.forward.0"),
    "escapes in a leaf": _json_dump(type=ESCAPES, dtype=ESCAPES, data_name=ESCAPES),
    "escapes in keys": json.dumps({ESCAPES: ESCAPES, "task": ESCAPES, "data": {"a": {ESCAPES: ESCAPES}}}).encode(),
    "escapes in a path": json.dumps({"npu_path": ESCAPES, "bench_path": ESCAPES}).encode(),
    "escapes in entries": json.dumps(
        {"Cell.fc1.Dense.forward.0": [ESCAPES], "0": [["Cell.fc1.Dense.forward.0"], [ESCAPES]]}
    ).encode(),
    "half characters": rb'{"data": {"Cell.\ud800.B.forward.0": {"output": [{"type": "\udfff", "dtype": "\ud800"}]}}}',
    "formula in a name": _json_dump("=cmd|'/c calc'!A1"),
    "formula in a module": _json_dump("Cell.@SUM(1+1)*cmd|' /C calc'!A0.Dense.forward.0"),
    "link in a name": _json_dump("http://example.com/a"),
    "markup in a name": _json_dump("<r><script>alert(1)</script></r>"),
    "tensor above the folder": _json_dump(data_name="../../../../etc/passwd.npy"),
    "tensor at an absolute place": _json_dump(data_name="/etc/passwd.npy"),
    "tensor at a device": _json_dump(data_name="/dev/zero.npy"),
    "tensor with NUL": _json_dump(data_name="0.input\0.npy"),
    "tensor of a long name": _json_dump(data_name="a" * 100_000 + ".npy"),
    "data folder elsewhere": json.dumps({**sound.dump_json(), "dump_data_dir": "/proc/self/fd"}).encode(),
    "data folder that is none": json.dumps({**sound.dump_json(), "dump_data_dir": ["/"]}).encode(),
    "data folder with NUL": json.dumps({**sound.dump_json(), "dump_data_dir": "\0"}).encode(),
    "level that is none": json.dumps({**sound.dump_json(), "level": {"a": []}, "framework": ["mindspore"]}).encode(),
    "parents in a circle": json.dumps(
        {
            f"Cell.{a}.forward.0": f"Cell.{b}.forward.0"
            for a, b in (("fc1.Dense", "act.ReLU"), ("act.ReLU", "fc2.Dense"), ("fc2.Dense", "fc1.Dense"))
        }
    ).encode(),
    "its own parent": json.dumps({"Cell.fc1.Dense.forward.0": "Cell.fc1.Dense.forward.0"}).encode(),
    "parents that are none": json.dumps(
        {"Cell.fc1.Dense.forward.0": [[]], "Cell.act.ReLU.forward.0": {"a": 1}}
    ).encode(),
    "weights elsewhere": json.dumps({"weight_map": {"a": "../golden.npz", "b": "/etc/passwd"}}).encode(),
    "weights in one file, often": json.dumps(
        {"weight_map": {str(i): "model.safetensors" for i in range(50_000)}}
    ).encode(),
    "ranks beyond count": json.dumps(
        {"npu_path": ".", "bench_path": ".", "rank_id": [10**12], "step_id": [-1]}
    ).encode(),
    "steps beyond count": b'{"dump_path": "d", "step": ["0-999999999999"], "rank": ["0-99999999999999999"]}',
    "patterns beyond patience": json.dumps(
        {"dump_path": "d", "statistics": {"list": ["name-regex((a+)+$)" * 1000]}}
    ).encode(),
}

YAML: dict[str, bytes] = {
    "empty": b"",
    "not text": bytes(range(256)) * 40,
    "runs a command": f'!!python/object/apply:os.system ["{TOUCH}"]'.encode(),
    "runs a command as a value": f'fc1: !!python/object/apply:os.system ["{TOUCH}"]'.encode(),
    "runs a command as a key": f'? !!python/object/apply:os.system ["{TOUCH}"]\n: a'.encode(),
    "runs a command in a rule": f'- ms_api: !!python/object/apply:os.system ["{TOUCH}"]\n  pt_api: a.b'.encode(),
    "runs a command, new": f"!!python/object/new:subprocess.Popen [{TOUCH.split()}]".encode(),
    "runs a command, by state": b"""!!python/object/new:type {args: ["z", !!python/tuple [], {"extend":
 !!python/name:exec }], listitems: "__import__('os').system('touch executed')"}""",
    "imports a module": b"!!python/module:antigravity",
    "names a function": b"api: !!python/name:os.system",
    "unknown tag": b"a: !<tag:example.com,2000:x> b",
    "deep lists": b"[" * _DEEP,
    "deep lists, closed": b"[" * 300_000 + b"]" * 300_000,
    "deep lists within bounds": b"[" * 60_000,
    "deep mappings within bounds": b"{a: " * 15_000,
    "deep dashes within bounds": b"- " * 30_000,
    "deep mappings": b"{a: " * 200_000,
    "deep dashes": b"- " * 300_000,
    "deep keys": b"? " * 300_000,
    "deep colons": b"a: " * 300_000,
    "deep steps": b"".join(b" " * i + b"a:\n" for i in range(1200)),
    "laughs": b"a: &a [x, x, x, x, x, x, x, x, x]\n" + _LAUGHS.encode(),
    "laughs in a list": b"api: &a [x]\ncompare_index:\n- &b [*a, *a]\n- &c [*b, *b]\n",
    "merged laughs": _MERGES.encode(),
    "merged laughs for a key": (_MERGES + "api: *j\ncompare_index: *j\n").encode(),
    "an alias of itself": b"&a [*a]",
    "a mapping of itself": b"&a {a: *a}",
    "a key of itself": b"&a ? *a\n: b",
    "duplicate keys": b"fc1: a\nfc1: b\napi: [a]\napi: [b]\n",
    "two documents": b"fc1: a\n---\nfc1: b\n",
    "huge integer": f"fc1: {_DIGITS}\napi: [{_DIGITS}]\n{_DIGITS}: a\n".encode(),
    "huge integer alone": _DIGITS.encode(),
    "huge hexadecimal": f"api: [0x{'f' * 500_000}]".encode(),
    "huge sexagesimal": f"api: [{':'.join(['59'] * 100_000)}]".encode(),
    "huge sexagesimal fraction": f"api: [{':'.join(['59'] * 5_000)}.5]".encode(),
    "impossible date": b"api: [2001-99-99]\ncompare_index: [2001-01-01 99:99:99]",
    "binary that is none": b"api: !!binary '%%%'",
    "unhashable key": b"? [a, b]\n: c\n",
    "escapes": json.dumps({ESCAPES: ESCAPES, "api": [ESCAPES], "compare_index": [ESCAPES]}).encode(),
    "escapes as a parent": json.dumps({ESCAPES: {ESCAPES: ESCAPES}}).encode(),
    "escapes in a rule": json.dumps([{"ms_api": ESCAPES, "pt_api": ESCAPES, ESCAPES: [1]}]).encode(),
    "escapes as a threshold": json.dumps({"v110": {ESCAPES: 1}, ESCAPES: {}}).encode(),
    "escapes, raw": ESCAPES.encode(),
    "formula": b'"=cmd|calc!A1": "=1+1"\napi: ["=1+1"]\ncompare_index: ["=1+1", Max diff]\n',
    "many keys": b"".join(b"k%d: v\n" % i for i in range(50_000)),
    "one long line": b"a: " + b"b" * 900_000,
    "thresholds that are none": b"v110: {a: .nan}\nlatest: [1]\ntolerances: -1e999\n",
}

_CALLS = {
    "runs a command": sound.pickled(os.system, TOUCH),
    "evaluates": sound.pickled(eval, f"__import__('os').system({TOUCH!r})"),
}


def _npy(header: str, data: bytes = bytes(48), version: bytes = b"\1\0") -> bytes:
    text = header.encode("latin-1")
    length = struct.pack(
        "<H" if version == b"\1\0" else "<I", len(text) & (0xFFFF if version == b"\1\0" else 0xFFFFFFFF)
    )
    return b"\x93NUMPY" + version + length + text + data


def _shaped(shape: str, descr: str = "'<f4'", data: bytes = bytes(48)) -> bytes:
    return _npy(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n", data)


def _objects() -> bytes:
    file = io.BytesIO()
    np.save(file, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    head = file.getvalue()[: file.getvalue().index(b"\n") + 1]
    return head + _CALLS["runs a command"]


NPY: dict[str, bytes] = {
    "empty": b"",
    "cut off in the header": sound.npy()[:40],
    "cut off": sound.npy()[:-5],
    "pickled objects that run a command": _objects(),
    "pickle alone": _CALLS["runs a command"],
    "code for a header": _npy("__import__('os').system('touch executed')\n"),
    "call in a header": _shaped("(3, __import__('os').system('touch executed'))"),
    "negative shape": _shaped("(-3, -4)"),
    "negative size": _shaped("(-12,)"),
    "gigantic shape": _shaped("(4611686018427387904, 4)"),
    "shape that overflows": _shaped("(4294967296, 4294967296, 1)"),
    "gigantic empty shape": _shaped("(0, 4611686018427387904, 4611686018427387904)"),
    "a million axes": _shaped("(" + "1," * 2000 + ")"),
    "huge sizes": _shaped(f"({'9' * 4000}, {'9' * 4000})"),
    "shape of texts": _shaped("('3', None)"),
    "shape of truths": _shaped("(True, True)"),
    "deep shape": _shaped("(" * 4000),
    "minus signs": _shaped("(" + "-" * 9000 + "1,)"),
    "records": _shaped("(1,)", "[('a', '<f4', (2147483647,))]"),
    "deep records": _shaped("(1,)", "[('a', " * 500 + "'<f4'" + ")]" * 500),
    "objects": _shaped("(1,)", "'|O'"),
    "texts": _shaped("(1,)", "'<U12'"),
    "wide items": _shaped("(1,)", "'|V2147483647'"),
    "dates": _shaped("(6,)", "'<M8[s]'"),
    "long header": _npy(" " * 60_000, version=b"\2\0"),
    "header beyond the file": b"\x93NUMPY\2\0" + struct.pack("<I", 0xFFFFFFF0) + b"{",
    "later version": _npy("{}", version=b"\3\0"),
    "unknown version": _npy("{}", version=b"\x09\0"),
    "only NaN": sound.npy(np.full((3, 4), np.nan, np.float32)),
    "only infinity": sound.npy(np.full((3, 4), np.inf, np.float32)),
    "other byte order": sound.npy(np.arange(12, dtype=">f8").reshape(3, 4)),
    "extremes": sound.npy(np.full((3, 4), np.finfo(np.float64).max)),
    "complex extremes": sound.npy(np.full((3, 4), complex(np.nan, np.inf))),
    "other shape": sound.npy(np.zeros((4, 3), np.float32)),
    "other dtype": sound.npy(np.zeros((3, 4), np.int64)),
    "no elements": sound.npy(np.zeros((0, 4), np.float32)),
    "truths": sound.npy(np.zeros((3, 4), bool)),
}

PT: dict[str, Content] = {
    "empty": b"",
    "not a zip": b"PK\3\4" + bytes(100),
    "cut off": sound.pt()[:-40],
    "runs a command": sound.pt(_CALLS["runs a command"]),
    "evaluates": sound.pt(_CALLS["evaluates"]),
    "pickle alone": _CALLS["runs a command"],
    "gigantic shape": sound.pt(sound.TENSOR.replace(b"K\x03K\x04\x86", b"\x8a\x08" + b"\xff" * 7 + b"\x0fK\x04\x86")),
    "negative shape": sound.pt(sound.TENSOR.replace(b"K\x03K\x04\x86", b"J\xfd\xff\xff\xffK\x04\x86")),
    "negative stride": sound.pt(sound.TENSOR.replace(b"K\x04K\x01\x86", b"J\xfc\xff\xff\xffK\x01\x86")),
    "key that climbs": sound.pt(sound.TENSOR.replace(b"X\x01\x00\x00\x000q", b"X\x0d\x00\x00\x00../../../etc/q")),
    "deep pickle": sound.pt(b"\x80\x02]" + b"\x85" * 60_000 + b"."),
    "twins": sound.pt(b"\x80\x02)" + b"q\x00h\x00h\x00\x86" * 11_000 + b"."),
    "marks": sound.pt(b"(" * 60_000 + b"."),
    "bomb": lambda: sound.archive({"a/data.pkl": sound.TENSOR, "a/data/0": bytes(48 << 20)}, zipfile.ZIP_DEFLATED),
    "bomb for a description": lambda: sound.archive({"a/data.pkl": bytes(48 << 20)}, zipfile.ZIP_DEFLATED),
    "many records": lambda: sound.archive({f"a/{i}": b"" for i in range(20_000)}),
    "names that climb": sound.archive({"../../a/data.pkl": sound.TENSOR, "/a/data.pkl": sound.TENSOR}),
    "escapes in names": sound.archive({f"{ESCAPES}/data.pkl": sound.TENSOR}),
}

NPZ: dict[str, Content] = {
    "empty": b"",
    "not a zip": b"PK\3\4" + bytes(100),
    "cut off": sound.npz()[:-30],
    "bomb": lambda: sound.archive(
        {"fc.weight.npy": _shaped("(12582912,)", data=bytes(48 << 20))}, zipfile.ZIP_DEFLATED
    ),
    "bomb that lies": lambda: sound.archive({"fc.weight.npy": sound.npy() + bytes(48 << 20)}, zipfile.ZIP_DEFLATED),
    "bombs in headers": lambda: sound.archive(
        {f"{i}.npy": b"\x93NUMPY\2\0" + struct.pack("<I", 12 << 20) + b" " * (12 << 20) for i in range(4)},
        zipfile.ZIP_DEFLATED,
    ),
    "names that climb": sound.archive({"../../evil.npy": sound.npy(), "/etc/evil.npy": sound.npy()}),
    "escapes in names": sound.archive({f"{ESCAPES}.npy": sound.npy()}),
    "formula in names": sound.archive({"=cmd|calc!A1.npy": sound.npy()}),
    "one name, often": sound.archive({"fc.weight.npy": sound.npy(), "fc.weight": sound.npy()}),
    **{f"{name}, inside": sound.archive({"fc.weight.npy": content}) for name, content in NPY.items()},
}

_NUMBERS = bytes(48)
SAFETENSORS: dict[str, bytes] = {
    "empty": b"",
    "cut off": sound.safetensors()[:30],
    "header beyond the file": struct.pack("<Q", 99_999_999) + b"{",
    "header beyond anything": struct.pack("<Q", 2**63) + b"{",
    "deep header": sound.safetensors(b'{"a":' * 200_000),
    "negative shape": sound.safetensors({"a": {"dtype": "F32", "shape": [-3, -4], "data_offsets": [0, 48]}}),
    "gigantic shape": sound.safetensors({"a": {"dtype": "F32", "shape": [2**62] * 4, "data_offsets": [0, 48]}}),
    "shape of huge sizes": sound.safetensors(
        b'{"a": {"dtype": "F32", "shape": ' + _long_sizes(3000) + b', "data_offsets": [0, 48]}}'
    ),
    "shape of a million axes": sound.safetensors(
        {"a": {"dtype": "F32", "shape": [1] * 300_000, "data_offsets": [0, 4]}}
    ),
    "offsets beyond the file": sound.safetensors({"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}),
    "offsets backwards": sound.safetensors({"a": {"dtype": "F32", "shape": [1], "data_offsets": [8, 4]}}),
    "overlapping": sound.safetensors({n: {"dtype": "F32", "shape": [3, 4], "data_offsets": [0, 48]} for n in "ab"}),
    "duplicate names": sound.safetensors(b'{"a": {}, "a": {}}'),
    "huge integer": sound.safetensors(
        f'{{"a": {{"dtype": "F32", "shape": [{_DIGITS}], "data_offsets": [0, 4]}}}}'.encode()
    ),
    "escapes": sound.safetensors({ESCAPES: {"dtype": ESCAPES, "shape": [3, 4], "data_offsets": [0, 48]}}),
    "formula": sound.safetensors({"=cmd|calc!A1": {"dtype": "F32", "shape": [3, 4], "data_offsets": [0, 48]}}),
    "half characters": sound.safetensors(rb'{"\ud800": {"dtype": "F32", "shape": [12], "data_offsets": [0, 48]}}'),
}

CKPT: dict[str, bytes] = {
    "empty": b"",
    "cut off": sound.ckpt()[:-20],
    "length beyond the file": b"\x0a" + b"\xff" * 8 + b"\x7f",
    "lengths inside out": b"\x0a\x05\x0a\x7f\x12\x7f\x0a",
    "endless number": b"\x0a" + b"\xff" * 1000,
    "gigantic shape": sound.ckpt().replace(b"\x08\x03\x08\x04", b"\x08\xff\xff\x03"),
    "many fields": b"\x0a\x7f" + b"\x08\x01" * 63 + b"\x08",
    "escapes": sound.ckpt().replace(b"fc.weight", b"\x1b[31m\x9b3\n"),
}

_STATISTIC = sound.STATISTIC_TITLES.rstrip("\n")
_SIZES = "999999999999999999, " * 5000


def _checks(text: str) -> bytes:
    """A table of pre-checks in which every cell is this text."""
    row = ",".join([f'"{text}"'] * len(sound.PRECHECK_TITLES))
    return f"{','.join(sound.PRECHECK_TITLES)}\r\n{row}\r\n".encode()


CSV: dict[str, bytes] = {
    "empty": b"",
    "not text": bytes(range(256)) * 40,
    "one endless cell": b'NPU Name,Max diff\r\n"' + b"a" * 2_000_000,
    "a million columns": b"," * 1_000_000,
    "a million lines": b"\n" * 1_000_000,
    "open quotes": b'"' * 99_999,
    "NUL": b"NPU Name,Max diff\r\n\0,\0\r\n",
    "escapes": f'NPU Name,Max diff\r\n"{ESCAPES}",1\r\n'.encode(),
    "escapes in titles": f'NPU Name,"{ESCAPES}"\r\na,1\r\n'.encode(),
    "formula": b"NPU Name,Max diff\r\n=cmd|calc!A1,=1+1\r\nCell.fc=1,@SUM(1)\r\n",
    "markup": b"NPU Name,Max diff\r\nCell.fc<r>x</r>,<r>x</r>\r\n<r>Cell.fc</r>,1\r\n",
    "long names": b"NPU Name,Max diff\r\nCell.fc" + b"a" * 100_000 + b",1\r\n",
    "huge integer": f"NPU Name,Max diff\r\nCell.fc,{_DIGITS}\r\n".encode(),
    "half characters": b"NPU Name,Max diff\r\nCell.fc\xed\xa0\x80,1\r\n",
    "short rows": b"Max diff,NPU Name\r\n1\r\n\r\n2,Cell.fc\r\n",
    "twice the same title": b"NPU Name,NPU Name,Max diff,Max diff\r\nCell.fc,a,1,2\r\n",
    "statistics of huge shapes": f'{_STATISTIC}\nReLU,a,0,0,1,input,0,4,Float32,"({_SIZES})",1,1\n'.encode() * 20,
    "statistics of huge numbers": f"{_STATISTIC}\nReLU,a,{_DIGITS},0,1,input,{_DIGITS},4,,(1),1e999,-nan\n".encode(),
    "statistics with escapes": f'{_STATISTIC}\n"{ESCAPES}","{ESCAPES}",0,0,1,input,0,4,"{ESCAPES}",(1),1,1\n'.encode(),
    "names that climb": b"1234567.npy,../../../etc/passwd.0.0.1.output.0.npy\n1234567,a.b.0.0.1.input.0\n",
    "names with escapes": f'1234567.npy,"{ESCAPES}"\n1234567.npy,"R.{ESCAPES}.0.0.1.output.0.D.Float32.npy"\n'.encode(),
    "names of a million parts": b"1234567.npy,ReLU" + b".1" * 50_000 + b".input.0.npy\n",
    "paths of a million parts": b"Default" + b"/a-B" * 300_000 + b"\n",
    "checks with escapes": _checks(ESCAPES),
    "checks with formulas": _checks("=cmd|calc!A1.0.forward.output.0"),
    "checks of a million parts": _checks("Torch" + ".forward.output" * 50_000),
    "paths with escapes": f"Default/{ESCAPES}/fc-Dense/MatMul-op0\n".encode(),
}

_HEAD, _CONTENT, _RELATIONS = "[Content_Types].xml", "xl/workbook.xml", "xl/_rels/workbook.xml.rels"


def _workbook(**changed: Callable[[bytes], bytes]) -> Callable[[], bytes]:
    """What makes the sound workbook with some of its parts, told by the ends of their names, made anew; deflated."""
    return partial(_changed_workbook, changed)


def _changed_workbook(changed: dict[str, Callable[[bytes], bytes]]) -> bytes:
    with zipfile.ZipFile(io.BytesIO(sound.table_xlsx())) as book:
        parts = {name: book.read(name) for name in book.namelist()}
    for end, change in changed.items():
        (name,) = [name for name in parts if name.endswith(f"/{end}.xml")]
        parts[name] = change(parts[name])
    return sound.archive(parts, zipfile.ZIP_DEFLATED)


_ENTITIES = "".join(f'<!ENTITY {name} "{f"&{below};" * 10}">' for below, name in itertools.pairwise("abcdefghij"))
_BILLION = f'<!DOCTYPE x [<!ENTITY a "lol">{_ENTITIES}]>'.encode()
_FILE = b'<!DOCTYPE x [<!ENTITY j SYSTEM "file:///etc/passwd">]>'


def _with_entity(document: bytes) -> Callable[[bytes], bytes]:
    def change(xml: bytes) -> bytes:
        head, _, rest = xml.partition(b"?>")
        return head + b"?>" + document + rest.replace(b"<t>NPU Name</t>", b"<t>NPU Name</t></si><si><t>&j;</t>", 1)

    return change


XLSX: dict[str, Content] = {
    "empty": b"",
    "not a zip": b"PK\3\4" + bytes(100),
    "cut off": sound.table_xlsx()[:-100],
    "bomb": _workbook(sheet1=lambda xml: xml.replace(b"<sheetData>", b"<sheetData>" + b" " * (40 << 20))),
    "bomb of texts": _workbook(
        sharedStrings=lambda xml: xml.replace(b"<si>", b"<si><t>a</t></si>" * 1_000_000 + b"<si>", 1)
    ),
    "a million entities": _workbook(sharedStrings=_with_entity(_BILLION)),
    "a file as an entity": _workbook(sharedStrings=_with_entity(_FILE)),
    "deep elements": _workbook(sheet1=lambda xml: xml.replace(b"<sheetData>", b"<sheetData>" + b"<a>" * 300_000)),
    "row beyond the sheet": _workbook(sheet1=lambda xml: xml.replace(b'r="2"', b'r="999999999"')),
    "rows far apart": _workbook(sheet1=lambda xml: xml.replace(b'<row r="2"', b'<row r="1048576"')),
    "column beyond the sheet": _workbook(sheet1=lambda xml: xml.replace(b'r="D2"', b'r="XFD2"')),
    "half characters": _workbook(sharedStrings=lambda xml: xml.replace(b"<t>Cell.fc", b"<t>Cell.fc_xD800_")),
    "escapes": _workbook(sharedStrings=lambda xml: xml.replace(b"<t>Cell.fc", b"<t>Cell.fc_x001B_[31m\xe2\x80\xae")),
    "formula": _workbook(sheet1=lambda xml: xml.replace(b"<v>0.5</v>", b"<f>cmd|calc!A1</f><v>0.5</v>")),
    "index beyond the texts": _workbook(sheet1=lambda xml: xml.replace(b"<v>0</v>", b"<v>999999999</v>")),
}

IR: dict[str, bytes] = {
    "not text": bytes(range(256)) * 40,
    "a number too long": sound.IR.replace("%0", f"%{_DIGITS}").encode(),
    "reads itself": sound.IR.replace("MatMul(%para1_x", "MatMul(%0").encode(),
    "a chain of gradients": "".join(
        f"  %{i}([CNode]{i}) = AddN(%{i - 1})\n      # Fullname with scope: (Gradients/Default/AddN-op{i})\n"
        for i in range(4_000)
    ).encode(),
    "a chain of loads": "".join(
        f"  %{i}([CNode]{i}) = Load(%{i - 1})\n      # Fullname with scope: (Default/Load-op{i})\n"
        for i in range(4_000)
    ).encode(),
    "a chain that is expanded": "".join(
        f"  %{i}([CNode]{i}) = Add(%{i - 1})\n      # Fullname with scope: (Expand/Default/Add-op{i})\n"
        for i in range(4_000)
    ).encode(),
    "a chain without names": "".join(f"  %{i}([CNode]{i}) = Load(%{i - 1})\n" for i in range(4_000)).encode()
    + sound.IR.encode(),
    "colons": (sound.IR + f"      # In file {':1~1' * 2400}/\n" * 20).encode(),
    "numbers": (sound.IR + f"      # In file a{':1' * 4800}/\n" * 20).encode(),
    "brackets": (sound.IR + f"  %7{'(' * 100_000}) = \n").encode(),
    "escapes": sound.IR.replace("fc-Dense", f"{ESCAPES[:-22]}-Dense").replace("self.fc", "\x1b[31m").encode(),
    "deep scope": sound.IR.replace("fc-Dense", "/".join(["a-B"] * 100_000)).encode(),
}

BIN: dict[str, bytes] = {"empty": b"", "cut off": bytes(47), "too long": bytes(52), "only NaN": b"\xff" * 48}

JOURNAL: dict[str, bytes]

_MAGIC = b"msprobe_ms journal 1\n"


def _records(*records: tuple[bytes, bytes]) -> bytes:
    from isal import isal_zlib

    bodies = [kind + payload for kind, payload in records]
    return _MAGIC + b"".join(struct.pack("<II", len(body), isal_zlib.crc32(body)) + body for body in bodies)


_ENVELOPE = (b"D", b'["statistics", "L0", "mindspore", null, true]')


def _journalled(head: bytes, text: bytes = b"") -> bytes:
    return _records(_ENVELOPE, (b"E", head + b"\n" + text))


JOURNAL = {
    "empty": b"",
    "another file": sound.npy(),
    "magic alone": _MAGIC,
    "length beyond the file": _MAGIC + struct.pack("<II", (1 << 30) - 1, 0) + b"D",
    "length beyond anything": _MAGIC + b"\xff" * 8,
    "no envelope": _records((b"E", b'["a", null, null, [], false]\n')),
    "envelope that is none": _records((b"D", b"[]")),
    "envelope of other kinds": _records(
        (b"D", b'[1, [2], {}, "../../../../tmp/evil", "x"]'), (b"E", b'["a", null, null, [], false]\n')
    ),
    "envelope that climbs": _records((b"D", b'["tensor", "L0", "mindspore", "/etc/..", true]')),
    "envelope with escapes": _records((b"D", json.dumps([ESCAPES, ESCAPES, ESCAPES, ESCAPES, True]).encode())),
    "deep envelope": _records((b"D", b"[" * _DEEP)),
    "deep entry": _journalled(b"[" * _DEEP),
    "huge integer": _journalled(f'["a", null, {_DIGITS}, [], false]'.encode()),
    "negative lengths": _journalled(b'["a", null, null, [["x", -5], ["y", 5]], false]'),
    "gigantic lengths": _journalled(b'["a", null, null, [["x", 1000000000000], ["y", -1000000000000]], false]'),
    "lengths that are none": _journalled(b'["a", null, null, [["x", 1.0], ["y", "5"]], false]', b"12"),
    "truths for lengths": _journalled(b'["a", null, null, [["x", true]], false]', b"1"),
    "name that is none": _journalled(b"[5, null, null, [], false]"),
    "unhashable name": _journalled(b'[["a"], null, null, [], false]'),
    "parent that is none": _journalled(b'["a", 5, [1], [], false]'),
    "unhashable parent": _journalled(b'["a", ["a"], null, [], false]'),
    "its own parent": _journalled(b'["a", "a", null, [], false]'),
    "field that is none": _journalled(b'["a", null, null, [[5, 0], [null, 0]], false]'),
    "text that is no JSON": _journalled(b'["a", null, null, [["input_args", 3]], false]', b"[[["),
    "escapes": _journalled(json.dumps([ESCAPES, ESCAPES, 0, [], False]).encode()),
    "half characters": _journalled(rb'["\ud800", "\udfff", 0, [], false]'),
    "call site that is none": _records(_ENVELOPE, (b"S", b"[[0], 5]"), (b"S", b'{"a": 1}')),
    "unknown kinds": _records(_ENVELOPE, (b"?", b"x"), (b"\x00", b"")),
    "many records": _records(_ENVELOPE, *[(b"S", b"[0, []]")] * 20_000),
}

#: The form of each kind of file (`readers`).
_PLACE, _INDEX = b'<div id="proofs"></div>', b'<script type="application/json" id="index">'


def _page(index: bytes) -> bytes:
    return _PLACE + _INDEX + index + b"</script>\n"


PAGE: dict[str, Content] = {
    "empty": b"",
    "no place": _INDEX + b'{"kind": "comparison"}</script>\n',
    "a place that has no end": b'<div id="proofs">' + _INDEX + b'{"kind": "comparison"}</script>\n',
    "an index that has no end": _PLACE + _INDEX + b'{"kind": "comparison"',
    "many places": _PLACE * 100_000 + _page(b'{"kind": "comparison"}'),
    "many indices": _page(b'{"kind": "comparison"}') * 10_000,
    "deep lists": _page(b'{"kind": "comparison", "proofs": ' + b"[" * _DEEP),
    "deep lists, closed": _page(b'{"kind": "comparison", "proofs": ' + b"[" * _DEEP + b"]" * _DEEP + b"}"),
    "huge integer": _page(b'{"kind": "comparison", "proofs": ' + _DIGITS.encode() + b"}"),
    "NaN": _page(b'{"kind": "comparison", "proofs": [NaN]}'),
    "proofs that are none": _page(b'{"kind": "comparison", "proofs": [1, null, {"calls": 3}, {"calls": [], "x": 1}]}'),
    "a proof of no texts": _page(
        b'{"kind": "comparison", "proofs": [{"calls": [1], "answer": 2, "sentence": [], "details": null}]}'
    ),
    "many proofs": lambda: _page(
        json.dumps(
            {"kind": "comparison", "proofs": [{"calls": [f"{n}"], "answer": "", "sentence": "", "details": []}
                                              for n in range(50_000)]}
        ).encode()
    ),
    "escapes in a proof": _page(
        json.dumps(
            {"kind": "comparison", "proofs": [{"calls": [ESCAPES], "answer": ESCAPES, "sentence": ESCAPES,
                                               "details": [ESCAPES, "\ud800", "</div>"]}]}
        ).encode()
    ),
    "not text": bytes(range(256)) * 40,
}  # fmt: skip


def _device_output(
    number: int, shape: Sequence[int], content: bytes, layout: int = 2, original: Sequence[int] = ()
) -> bytes:
    return device_file(Tensor("output", content, number, layout, shape, original))


def _device_header(message: bytes) -> bytes:
    return len(message).to_bytes(8, "little") + message


DEVICE: dict[str, Content] = {
    "empty": b"",
    "a header longer than any file": b"\xff" * 8,
    "a header of nothing": bytes(8),
    "a number without end": _device_header(b"\x18" + b"\xff" * 30),
    "groups in groups": _device_header(b"\x1b" * 5000),
    "a field longer than the header": _device_header(b"\x1a\xff\xff\xff\xff\x0f"),
    "a million tensors": lambda: _device_header(b"\x1a\x00" * 500_000),
    "more than a header": lambda: _device_header(b"\x1a\x00" * 1_000_000),
    "a million axes": lambda: _device_output(1, [1] * 1_000_000, bytes(4)),
    "more elements than memory": _device_output(1, (1 << 40, 1 << 40), bytes(8)),
    "no elements of lengths that no array has": _device_output(1, (0, 1 << 40, 1 << 40), b""),
    "a length of 64 bits": _device_output(1, ((1 << 64) - 1,), bytes(4)),
    "blocks of nothing": _device_output(1, (1, 0, 1, 1, 0), b"", 3, (1, 3, 1, 1)),
    "an original shape that no blocks hold": _device_output(1, (1, 1, 1, 1, 8), bytes(32), 3, (1 << 60, 1 << 60, 1, 1)),
    "an original shape of zeros": _device_output(1, (1, 1, 16, 8), bytes(512), 29, (0, 0)),
    "no fractals of a shape that no array has": _device_output(1, (0, 1, 16, 8), b"", 4, (1, 1 << 62, 0, 1 << 62)),
    "no matrices of a shape that no array has": _device_output(
        1, (0, 1, 1, 16, 8), b"", 29, (0, 1 << 62, 1 << 62, 16, 8)
    ),
    "a layout and a dtype that are none": _device_output(1 << 40, (1,), bytes(4), 1 << 62),
    "cut off": _device_output(1, (4,), bytes(16))[:-1],
}


FORMS: Mapping[str, Mapping[str, Content]] = {
    "dump.json": JSON, "stack.json": JSON, "construct.json": JSON, "weight index": JSON, "compare.json": JSON,
    "operation mapping": JSON, "hand-made pairs": JSON,
    "config": JSON, "kernel metadata": JSON, "proved dump": JSON, "report": JSON,
    "report page": PAGE, "proved tensor": NPY,
    "journal": JOURNAL,
    "npy": NPY, "kernel npy": NPY, "bin": BIN, "kernel bin": BIN,
    "pt": PT, "state dict": PT, "npz": NPZ, "safetensors": SAFETENSORS, "ckpt": CKPT,
    "layer mapping": YAML, "cell mapping": YAML, "data mapping": YAML, "api mapping": YAML, "thresholds": YAML,
    "merge config": YAML, "precheck thresholds": YAML,
    "csv table": CSV, "mapping.csv": CSV, "statistic.csv": CSV, "execution order": CSV,
    "precheck table": CSV, "gradient table": CSV,
    "gradient directions": NPY, "logits": NPY, "logits of torch": PT, "collection": JSON, "launch file": YAML,
    "xlsx table": XLSX,
    "graph": IR, "device dump": DEVICE,
}  # fmt: skip


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


#: What lies in the place of a file.
PLACES: dict[str, Callable[[Path], None]] = {
    "a pipe": _pipe,
    "a device": _device,
    "a folder": Path.mkdir,
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a link to nothing": lambda path: path.symlink_to("nothing"),
}
