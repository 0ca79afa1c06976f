"""Small sound files of every kind that is read, made of bytes: what attacks and mutations start from."""

from __future__ import annotations

import csv
import io
import json
import pickle
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xlsxwriter

from msprobe_ms.dump.writing.contents import encode_entry
from msprobe_ms.dump.writing.writer import DumpStore, EntryPart

VALUES = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
#: A pickle of torch that describes a tensor of 3 × 4 floats in the record ``data/0``.
TENSOR = (
    b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\nq\x00((X\x07\x00\x00\x00storageq\x01ctorch\nFloatStorage\nq\x02"
    b"X\x01\x00\x00\x000q\x03X\x03\x00\x00\x00cpuq\x04K\x0ctq\x05QK\x00K\x03K\x04\x86q\x06K\x04K\x01\x86q\x07\x89"
    b"ccollections\nOrderedDict\nq\x08)Rq\ttq\nRq\x0b."
)
_STATE = b"\x80\x02}q\x0cX\x09\x00\x00\x00fc.weight" + TENSOR[2:-1] + b"s."


def npy(array: np.ndarray = VALUES) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def archive(records: Mapping[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as written:
        for name, content in records.items():
            written.writestr(zipfile.ZipInfo(name), content, compression)
    return file.getvalue()


def pt(description: bytes = TENSOR, numbers: bytes = VALUES.tobytes()) -> bytes:
    return archive({"a/data.pkl": description, "a/byteorder": b"little", "a/data/0": numbers})


def state_dict() -> bytes:
    return pt(_STATE)


def npz() -> bytes:
    return archive({"fc.weight.npy": npy()}, zipfile.ZIP_DEFLATED)


def safetensors(header: Any = None, numbers: bytes = VALUES.tobytes()) -> bytes:
    described = {"dtype": "F32", "shape": [3, 4], "data_offsets": [0, len(numbers)]}
    text = header if isinstance(header, bytes) else json.dumps(header or {"fc.weight": described}).encode()
    return struct.pack("<Q", len(text)) + text + numbers


def ckpt() -> bytes:
    def field(number: int, content: bytes) -> bytes:
        assert len(content) < 128
        return bytes([number << 3 | 2, len(content)]) + content

    tensor = b"\x08\x03\x08\x04" + field(2, b"Float32") + field(3, VALUES.tobytes())
    return field(1, field(1, b"fc.weight") + field(2, tensor))


def leaf(value: int = 0, file: str | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "type": "mindspore.Tensor", "dtype": "Float32", "shape": [3, 4],
        "Max": 1.0 + value, "Min": -1.0, "Mean": 0.0, "Norm": 2.2, "requires_grad": False,
    }  # fmt: skip
    return found | ({"data_name": file} if file else {})


def dump_json(suffix: str = "npy", *, names: tuple[str, ...] = ()) -> dict[str, Any]:
    names = names or ("Cell.fc1.Dense.forward.0", "Cell.act.ReLU.forward.0", "Cell.fc2.Dense.forward.0")
    data = {}
    for number, name in enumerate(names):
        files = [f"{number}.{state}.{suffix}" for state in ("input", "output")]
        data[name] = {"input_args": [leaf(0, files[0])], "input_kwargs": {}, "output": [leaf(number, files[1])]}
    return {"task": "tensor", "level": "L0", "framework": "mindspore", "dump_data_dir": None, "data": data}


def dump(folder: Path, suffix: str = "npy", *, names: tuple[str, ...] = ()) -> Path:
    """A rank's folder of a dump of task tensor."""
    (folder / "dump_tensor_data").mkdir(parents=True)
    content = dump_json(suffix, names=names)
    (folder / "dump.json").write_text(json.dumps(content))
    (folder / "stack.json").write_text(
        json.dumps({"0": [list(content["data"]), ["File net.py, line 1, in construct"]]})
    )
    (folder / "construct.json").write_text(json.dumps(dict.fromkeys(content["data"])))
    tensor = {"npy": npy(), "pt": pt(), "bin": VALUES.tobytes()}[suffix]
    for body in content["data"].values():
        for each in (*body["input_args"], *body["output"]):
            (folder / "dump_tensor_data" / each["data_name"]).write_bytes(tensor)
    return folder


#: A layer that is proved by its formula, so that no framework is imported.
PROVED = "Cell.act.SiLU.forward.0"


def proved(folder: Path) -> Path:
    """A report of two dumps whose only call is right, and its page."""
    for side in ("target", "golden"):
        dump(folder / side, names=(PROVED,))
        (folder / side / "dump_tensor_data" / "0.output.npy").write_bytes(npy(VALUES / (1 + np.exp(-VALUES))))
    (folder / "report").mkdir()
    dumps = {side: f"{folder}/{side}/dump.json" for side in ("target", "golden")}
    origin = {"target": f"{PROVED}.output.0", "golden": f"{PROVED}.output.0"}
    (folder / "report" / "compare_summary_1.json").write_text(json.dumps({"origins": [origin], "dumps": dumps}))
    (folder / "report" / "compare_report_1.html").write_bytes(PAGE)
    return folder


#: As much of a report's page as the command prove reads.
PAGE = (
    b'<!doctype html><header id="verdict"><div id="proofs"></div></header>\n'
    b'<script type="application/json" id="index">{"kind":"comparison","proofs":[]}</script>\n<script>1</script>'
)


def journal(folder: Path) -> Path:
    """A dump whose process was killed."""
    store = DumpStore(folder, task="statistics", level="L0", framework="mindspore", tensors=False)
    store.call_site(0, ["File net.py, line 1, in construct"])
    for name, body in dump_json()["data"].items():
        store.entry(EntryPart(name, list(body.items()), None, 0))
    return folder / "dump.journal"


STATISTIC_TITLES = "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max Value,Min Value\n"


def kernels(root: Path, suffix: str = "npy") -> Path:
    """Raw kernel files of one iteration with everything that MindSpore writes beside them."""
    rank = root / "rank_0"
    folder = rank / "Net" / "0" / "0"
    folder.mkdir(parents=True)
    scope = "Default_network-Net_fc-Dense_MatMul-op0"
    for moment, (io_, slot) in enumerate((("input", 0), ("input", 1), ("output", 0)), 1000):
        name = f"MatMul.{scope}.0.0.{moment}.{io_}.{slot}.DefaultFormat.Float32.{suffix}"
        (folder / name).write_bytes(npy() if suffix == "npy" else VALUES.tobytes())
    (folder / "1234567.npy").write_bytes(npy())
    (folder / "mapping.csv").write_text(
        "1234567.npy,ReLU.Default_ReLU-op1.0.0.1004.output.0.DefaultFormat.Float32.npy\n"
    )
    (folder / "statistic.csv").write_text(
        STATISTIC_TITLES + 'ReLU,Default/ReLU-op1,0,0,1003,input,0,48,Float32,"(3, 4)",1.0,-1.0\n'
    )
    (rank / "execution_order").mkdir()
    (rank / "execution_order" / "ms_execution_order_graph_0.csv").write_text(
        "Default/network-Net/fc-Dense/MatMul-op0\n"
    )
    (rank / "graphs").mkdir()
    (rank / "graphs" / "ms_output_trace_code_graph_0.ir").write_text(IR)
    (rank / ".dump_metadata").mkdir()
    (rank / ".dump_metadata" / "data_dump.json").write_text(json.dumps({"device_target": "CPU"}))
    return root


IR = """\
subgraph @kernel_graph_0() {
  %0([CNode]1) = MatMul(%para1_x, %para2_fc.weight) {instance name: matmul} primitive_attrs: {unique_id: "5"}
      : (<Tensor[Float32], (3, 4)>) -> (<Tensor[Float32], (3, 4)>)
      # Fullname with scope: (Default/network-Net/fc-Dense/MatMul-op0)
      # In file net.py:12~12, 8~30/        return self.fc(x)/
  %1([CNode]2) = ReLU(%0) primitive_attrs: {forward_unique_id: "5"}
      # Fullname with scope: (Default/ReLU-op1)
}
"""


def table_csv() -> bytes:
    return b"NPU Name,Bench Name,Max diff,Result\r\nCell.fc.Dense.forward.0.input.0,Module.fc,0.5,ok\r\n"


def table_xlsx() -> bytes:
    file = io.BytesIO()
    with xlsxwriter.Workbook(file) as book:
        sheet = book.add_worksheet()
        for line, row in enumerate(csv.reader(io.StringIO(table_csv().decode()))):
            sheet.write_row(line, 0, row)
    return file.getvalue()


#: Columns of the details of an accuracy pre-check.
PRECHECK_TITLES = [
    "API Name", "DEVICE Dtype", "小值域错误占比", "均方根误差", "相对误差最大值", "相对误差平均值", "误差均衡性",
    "二进制一致错误率", "inf/nan错误率", "相对误差错误率", "绝对误差错误率", "ULP误差平均值", "ULP误差大于阈值占比",
    "双千指标", "Status", "Message",
]  # fmt: skip


def precheck_csv() -> bytes:
    figures = ["0.5"] * (len(PRECHECK_TITLES) - 4)
    row = ["Torch.exp.0.forward.output.0", "torch.float32", *figures, "pass", ""]
    return f"\ufeff{','.join(PRECHECK_TITLES)}\r\n{','.join(row)}\r\n".encode()


LAYER_MAPPING = b"TopLayer:\n  fc1: fc1\nDense:\n  a + b: ab\n"
CELL_MAPPING = b"fc1.Dense: fc1.Dense\n"
DATA_MAPPING = b"Cell.fc1.Dense.forward.0.input.0: Cell.fc1.Dense.forward.0.input.0\n"
API_MAPPING = b"- ms_api: Functional.relu\n  pt_api: Torch.relu\n  ms_args: [0, 1]\n  pt_args: [0, 1]\n"
THRESHOLDS = b"latest:\nv110:\ntolerances:\n"
PRECHECK_THRESHOLDS = b"own:\nverdict:\n"
MERGE_CONFIG = b"api:\n  - Cell.fc\ncompare_index:\n  - Max diff\n"
CONFIG = (
    b'{"task": "statistics", "dump_path": "dump", "level": "L1", "step": [0, "2-4"], "statistics": {"list": ["relu"]}}'
)


def pickled(function: Any, *arguments: Any) -> bytes:
    """A pickle that calls ``function`` when it is loaded."""

    class Call:
        def __reduce__(self) -> tuple:
            return function, arguments

    return pickle.dumps(Call(), 2)


def record(name: str, fields: Mapping[str, str]) -> bytes:
    return encode_entry(name, [(key, text.encode()) for key, text in fields.items()], None, None)


#: What task grad_probe writes of one parameter.
GRADIENT_TABLE = b'param_name,max,min,norm,shape\nfc.weight,1.0,-1.0,2.0,"[3, 4]"\n'

#: What config_check collects.
COLLECTION = json.dumps(
    {
        "packages": {"numpy": "1.26.4"}, "environment": {"OMP_NUM_THREADS": "1"}, "hyperparameters": {"lr": 1e-4},
        "random": {"seed": 1}, "dataset": {"step 0: input 0": {"shape": [2], "maximum": 1.0, "norm": 2.0}},
        "weights": {"fc.weight": {"shape": [3, 4], "md5": "1234", "mean": 0.5}},
    }
).encode()  # fmt: skip
