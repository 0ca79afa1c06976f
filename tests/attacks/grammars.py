"""Files made by the grammar of each format, and wrong at its level: lengths, offsets, counts, nesting, keys, types.

What is damaged at random (`test_fuzz`) seldom gets past the first check of a reader; these are right but for a little.
"""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from msprobe_ms.dump.names import LONGEST_NAME, MOST_PARTS
from tests.attacks import sound
from tests.attacks.attacks import ESCAPES, _records

Bytes = st.SearchStrategy[bytes]

#: Numbers around which counts, lengths and offsets break.
COUNTS = st.one_of(
    st.integers(-2, 20), st.sampled_from([2**n + k for n in (7, 8, 15, 16, 31, 32, 53, 62, 63, 64) for k in (-1, 0, 1)])
)
_PARTS = st.one_of(
    st.sampled_from(
        ["fc1", "fc2", "act", "layers", "0", "1", "Dense", "ReLU", "network", "", "²", ESCAPES, "=1+1", "a + b"]
    ),
    st.text(max_size=6),
)
_LONG = [60, MOST_PARTS - 4, 2 * MOST_PARTS]
_PATHS = st.one_of(
    st.lists(_PARTS, max_size=5).map(".".join),
    st.builds(lambda part, count: ".".join([part] * count), _PARTS, st.sampled_from(_LONG)),
    st.builds(lambda count: "a" * count, st.sampled_from([300, LONGEST_NAME - 30, 2 * LONGEST_NAME])),
)  # fmt: skip
_INDICES = st.one_of(st.integers(0, 3).map(str), st.sampled_from(["", "-1", "00", "9" * 19, "9" * 5000, "٣"]))
NAMES = st.one_of(
    st.sampled_from(["Cell.fc1.Dense.forward.0", "Cell.act.ReLU.forward.0", "Cell.fc2.Dense.forward.0"]),
    st.builds(
        "{}.{}.{}.{}.{}".format, st.sampled_from(["Cell", "Module", "Functional", "x"]), _PATHS, _PARTS,
        st.sampled_from(["forward", "backward", "parameters_grad", "sideward"]), _INDICES,
    ),
    st.builds(
        "{}.{}.{}.{}".format, st.sampled_from(["Functional", "Primitive", "Optimizer", "Parameter", ""]), _PATHS,
        _INDICES, st.sampled_from(["forward", "backward"]),
    ),
    st.builds("{}.{}.debug".format, _PATHS, _INDICES),
)  # fmt: skip
_FIGURES = st.one_of(
    st.floats(), st.integers(), st.sampled_from([None, 10**400, "1", True, [1.0], {"a": 1}, float("nan"), -0.0])
)
_SHAPES = st.one_of(st.lists(COUNTS, max_size=4), st.sampled_from([None, "[]", [[3]], {"0": 3}, [2] * 70]))
_DTYPES = st.sampled_from(["Float32", "torch.bfloat16", "float8_e4m3fn", "Bool", "", None, 3, "<class 'int'>", ESCAPES])
_LEAVES = st.one_of(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["mindspore.Tensor", "torch.Tensor", "int", "slice", "torch.Size", "ellipsis", ""])},
        optional={
            "dtype": _DTYPES, "shape": _SHAPES, "Max": _FIGURES, "Min": _FIGURES, "Mean": _FIGURES, "Norm": _FIGURES,
            "requires_grad": st.sampled_from([True, False, None, "yes"]), "md5": st.text(max_size=8), "value": _FIGURES,
            "data_name": st.sampled_from(["0.input.npy", "../0.input.npy", "", "-1", "a/b.npy", 5, "x" * 300]),
            "Sketch": st.one_of(st.text(max_size=30), st.just("A" * 400), st.just(7)), "unwritten": st.booleans(),
        },
    ),
    st.none(), st.booleans(), st.integers(), st.text(max_size=5),
)  # fmt: skip


def _nested(value: Any, depth: int) -> Any:
    for _ in range(depth):
        value = [value]
    return value


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.one_of(_PARTS, st.just("k" * 3000))
    return st.one_of(st.lists(inner, max_size=4), st.dictionaries(names, inner, max_size=3))


#: Deep nesting once on every way inwards: twice is more than what writes them here can take.
_DEEP = st.builds(_nested, st.one_of(_LEAVES, _containers(_LEAVES)), st.sampled_from([5, 100, 399, 401, 850]))
_VALUES: st.SearchStrategy[Any] = st.recursive(st.one_of(_LEAVES, _DEEP), _containers, max_leaves=12)


_BODIES = st.one_of(
    st.fixed_dictionaries(
        {},
        optional={
            "input_args": st.lists(_VALUES, max_size=4), "input_kwargs": st.dictionaries(_PARTS, _VALUES, max_size=3),
            "output": st.lists(_VALUES, max_size=4), "parameters": st.dictionaries(_PARTS, _VALUES, max_size=3),
            "recompute": st.booleans(), "scope": st.one_of(st.just("Default/a-B/" * 300), st.text(max_size=5)),
        },
    ),
    _VALUES,
)  # fmt: skip


def _object(members: list[tuple[str, Any]]) -> str:
    """JSON with keys that stand in it twice, as they were drawn."""
    return "{" + ", ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in members) + "}"


def _of_names(values: st.SearchStrategy[Any]) -> st.SearchStrategy[str]:
    return st.lists(st.tuples(NAMES, values), max_size=8).map(_object)


@st.composite
def dump_json(draw: st.DrawFn) -> bytes:
    envelope = [("task", draw(st.sampled_from(["statistics", "tensor", "", 5]))), ("dump_data_dir", None)]
    envelope += [("level", draw(st.sampled_from(["L0", "mix", "debug", None]))), ("framework", "mindspore")]
    head = _object(draw(st.permutations(envelope)))[1:-1]
    data = f'"data": {draw(_of_names(_BODIES))}'
    return f"{{{', '.join(draw(st.permutations([head, data])))}}}".encode("utf-8", "surrogatepass")


CONSTRUCT = _of_names(st.one_of(NAMES, st.none(), st.lists(st.one_of(NAMES, COUNTS), max_size=2), COUNTS)).map(
    str.encode
)
_FRAMES = st.lists(st.one_of(st.text(max_size=20), st.just("File a, line 1, in b, \n c"), COUNTS), max_size=3)
STACK = st.one_of(
    _of_names(_FRAMES),
    st.lists(st.tuples(COUNTS.map(str), st.tuples(st.lists(NAMES, max_size=3), _FRAMES))).map(_object),
).map(str.encode)


@st.composite
def journals(draw: st.DrawFn) -> bytes:
    """Records whose checksums are right, whatever they say."""
    records = [(b"D", json.dumps(["statistics", "L0", "mindspore", None, True]).encode())]
    for _ in range(draw(st.integers(0, 4))):
        text = json.dumps(draw(_VALUES)).encode()
        length = draw(st.one_of(st.just(len(text)), COUNTS))
        head = [draw(NAMES), draw(st.one_of(st.none(), NAMES)), draw(st.one_of(st.none(), COUNTS)),
                [[draw(st.sampled_from(["input_args", "output", ""])), length]], draw(st.booleans())]  # fmt: skip
        records.append((draw(st.sampled_from([b"E", b"S", b"D", b"?"])), json.dumps(head).encode() + b"\n" + text))
    content = bytearray(_records(*draw(st.permutations(records))))
    if draw(st.booleans()):  # a length that lies
        struct.pack_into("<I", content, 21, draw(st.integers(0, 2**32 - 1)))
    return bytes(content)


@st.composite
def npys(draw: st.DrawFn) -> bytes:
    shape = draw(st.one_of(st.just([3, 4]), st.lists(COUNTS, max_size=5)))
    kind = draw(
        st.sampled_from(["<f4", ">f8", "|b1", "<i8", "|O", "<U9", "|V2147483647", "<c16", "<M8[s]", "f4,i4", "", "<f9"])
    )
    header = f"{{'descr': {kind!r}, 'fortran_order': {draw(st.sampled_from([True, False, 2]))}, "
    header += f"'shape': ({''.join(f'{size},' for size in shape)}), }}"
    text = header.encode() + b" " * draw(st.sampled_from([0, 1, 63, 9000])) + b"\n"
    version = draw(st.sampled_from([(1, "<H"), (2, "<I"), (3, "<I"), (0, "<H")]))
    length = draw(st.one_of(st.just(len(text)), st.integers(0, 2**16 - 1)))
    data = bytes(draw(st.sampled_from([48, 47, 49, 0, 96, 4096])))
    return b"\x93NUMPY" + bytes([version[0], 0]) + struct.pack(version[1], length) + text + data


@st.composite
def archives(draw: st.DrawFn, members: st.SearchStrategy[dict[str, bytes]]) -> bytes:
    """An archive whose directory lies about one of its members (APPNOTE 4.3.12: offset and format of each field)."""
    method = draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
    raw = bytearray(sound.archive(draw(members), method))
    for _ in range(draw(st.integers(0, 2))):
        place = raw.find(b"PK\x01\x02", draw(st.integers(0, len(raw))))
        if place >= 0:
            offset, form = draw(
                st.sampled_from([(8, "<H"), (10, "<H"), (20, "<I"), (24, "<I"), (28, "<H"), (30, "<H"), (42, "<I")])
            )
            most = 2 ** (8 * struct.calcsize(form)) - 1
            struct.pack_into(form, raw, place + offset, draw(st.sampled_from([0, 1, 48, len(raw), most >> 1, most])))
    return bytes(raw)


def _pickles() -> Bytes:
    """Descriptions of a tensor with one of their numbers, or of their opcodes, in another place."""
    numbers = st.sampled_from(
        [b"K\x00", b"K\xff", b"J\xff\xff\xff\xff", b"\x8a\x08" + b"\xff" * 7 + b"\x7f", b"N", b"]", b"("]
    )
    places = st.sampled_from([b"K\x0c", b"K\x00", b"K\x03", b"K\x04", b"K\x01", b"\x89", b"tQ", b"q\x05", b"R"])
    changed = st.builds(lambda old, new: sound.TENSOR.replace(old, new, 1), places, numbers)
    twice = st.integers(1, 400).map(lambda count: b"\x80\x02" + b"]q\x00" + b"(h\x00h\x00e" * count + b".")
    return st.one_of(
        changed, twice, st.just(sound.TENSOR), st.just(b"\x80\x02}q\x0c" + b"X\x01\x00\x00\x00a" * 2 + b"s.")
    )


_PT = archives(
    st.builds(
        lambda pickle, count, order: {"a/data.pkl": pickle, "a/byteorder": order, "a/data/0": bytes(count)},
        _pickles(), st.sampled_from([48, 0, 47, 4096]), st.sampled_from([b"little", b"big", b"x"]),
    )
)  # fmt: skip
_NPZ = archives(st.dictionaries(st.one_of(_PARTS, st.just("fc.weight")).map("{}.npy".format), npys(), max_size=4))


@st.composite
def safetensors(draw: st.DrawFn) -> bytes:
    described = st.fixed_dictionaries(
        {"dtype": st.sampled_from(["F32", "BF16", "I64", "BOOL", "F8_E5M2", "X", None]), "shape": _SHAPES,
         "data_offsets": st.lists(st.one_of(st.sampled_from([0, 48]), COUNTS), max_size=3)}
    )  # fmt: skip
    members = draw(st.lists(st.tuples(st.one_of(_PATHS, st.just("__metadata__")), described), max_size=5))
    content = bytearray(sound.safetensors(_object(members).encode("utf-8", "surrogatepass")))
    if draw(st.booleans()):
        struct.pack_into("<Q", content, 0, draw(st.integers(0, 2**64 - 1)))
    return bytes(content)


def _field(number: int, content: bytes, lie: int) -> bytes:
    length = len(content) + lie
    encoded = bytearray()
    while length > 127:
        encoded.append(length & 127 | 128)
        length >>= 7
    return bytes([number << 3 | 2, *encoded, max(length, 0)]) + content


@st.composite
def ckpts(draw: st.DrawFn) -> bytes:
    lies = st.sampled_from([0, 0, 0, 0, 1, -1, 100, 2**40])
    content = b""
    for _ in range(draw(st.integers(0, 4))):
        sizes = draw(st.lists(st.integers(0, 2**34), max_size=4))
        tensor = b"".join(b"\x08" + _field(0, b"", size)[1:] for size in sizes)
        tensor += _field(2, draw(st.sampled_from([b"Float32", b"BFloat16", b"x", b""])), draw(lies))
        tensor += _field(3, bytes(draw(st.sampled_from([48, 0, 47]))), draw(lies))
        name = draw(_PATHS).encode("utf-8", "surrogatepass")
        content += _field(1, _field(1, name, draw(lies)) + _field(2, tensor, draw(lies)), draw(lies))
    return content


def tables(titles: list[str]) -> Bytes:
    """CSV with these titles, in any order, some of them twice or missing, and rows of any length."""
    cells = st.one_of(
        NAMES, COUNTS.map(str), st.sampled_from(["input", "Float32", '"(3, 4)"', "nan", "1e999", "=1", '"', ""])
    )
    heads = st.one_of(st.just(titles), st.permutations(titles), st.lists(st.sampled_from(titles), max_size=20))
    rows = st.lists(st.lists(cells, max_size=len(titles) + 2), max_size=6)
    return st.builds(
        lambda head, body: "\n".join(map(",".join, [head, *body])).encode("utf-8", "surrogatepass"), heads, rows
    )


def mappings(levels: int) -> Bytes:
    """Yaml of names to names, so many levels deep or one more or less."""
    inner: st.SearchStrategy[Any] = st.one_of(_PATHS, NAMES, COUNTS, st.none(), st.booleans())
    for _ in range(levels - 1):
        inner = st.one_of(inner, st.lists(st.tuples(_PATHS, inner), max_size=4).map(dict))
    return st.lists(st.tuples(_PATHS, inner), max_size=6).map(_object).map(str.encode)


_STATISTICS = sound.STATISTIC_TITLES.strip().split(",")

#: The grammar of each kind of file (`readers`).
GRAMMARS: dict[str, Callable[[], Bytes]] = {
    "dump.json": dump_json, "stack.json": lambda: STACK, "construct.json": lambda: CONSTRUCT, "journal": journals,
    "npy": npys, "kernel npy": npys, "npz": lambda: _NPZ, "pt": lambda: _PT, "state dict": lambda: _PT,
    "safetensors": safetensors, "ckpt": ckpts,
    "layer mapping": lambda: mappings(2), "cell mapping": lambda: mappings(1), "data mapping": lambda: mappings(1),
    "csv table": lambda: tables(["NPU Name", "Bench Name", "Max diff", "Result"]),
    "precheck table": lambda: tables(sound.PRECHECK_TITLES),
    "statistic.csv": lambda: tables(_STATISTICS),
    "mapping.csv": lambda: tables(["1234567.npy", "ReLU.a.0.0.1.output.0.npy"]),
}  # fmt: skip
