"""Every kind of file that a console command reads: where it lies, what lies around it, which commands read it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.attacks import sound
from tests.device_files import Tensor, device_file, of

Commands = list[list[str]]


def emptied(folder: Path) -> Path:
    """Make an empty folder, whatever is there."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


@dataclass(frozen=True)
class Reader:
    """``lay`` makes the surroundings in a folder, which is empty, and gives the file's path; ``reads`` the commands."""

    kind: str
    lay: Callable[[Path], Path]
    reads: Callable[[Path], Commands]


def _compare(folder: Path, *more: str) -> list[str]:
    return ["compare", "-tp", f"{folder}/target", "-gp", f"{folder}/golden", "-o", f"{folder}/out", *more]


def _swapped(folder: Path) -> list[str]:
    return ["compare", "-tp", f"{folder}/golden", "-gp", f"{folder}/target", "-o", f"{folder}/out", "--csv"]


def _of_dump(folder: Path) -> Commands:
    return [
        _compare(folder, "-s"),
        _swapped(folder),
        _compare(folder, "--node", "fc1"),
        _compare(folder, "-lm", "-f"),
        _compare(folder, "--profile", "v110"),
        ["overflow_check", "-i", f"{folder}/target", "-o", f"{folder}/out"],
        ["export", "-tp", f"{folder}/target", "-gp", f"{folder}/golden", "--to", "vis.db", "-o", f"{folder}/out"],
        _view(folder),
        ["nan_analyze", "-i", f"{folder}/target", "-o", f"{folder}/out"],
        ["config_check", "-d", "--dump", f"{folder}/target", "-o", f"{folder}/out.zip"],
        ["bisect", "--next", f"{folder}/target", f"{folder}/golden", "--skip", "1"],
        ["acc_check", "-api_info", f"{folder}/target/dump.json", "-o", f"{folder}/out"],
    ]


def _view(folder: Path) -> list[str]:
    return ["view", f"{folder}/target", "-o", f"{folder}/out"]


def _in_dump(name: str, suffix: str = "npy") -> Callable[[Path], Path]:
    def lay(folder: Path) -> Path:
        sound.dump(folder / "golden")
        return sound.dump(folder / "target", suffix) / name

    return lay


def _of_tensor(folder: Path) -> Commands:
    data = f"{folder}/target/dump_tensor_data"
    return [_compare(folder), _swapped(folder), ["convert", data, "--to", "csv", "-o", f"{folder}/out", "--overwrite"]]


def _journal(folder: Path) -> Path:
    sound.dump(folder / "golden")
    return sound.journal(folder / "target")


def _of_journal(folder: Path) -> Commands:
    return [["recover", f"{folder}/target"], _view(folder), _compare(folder)]


def _weights(name: str, content: Callable[[], bytes]) -> Callable[[Path], Path]:
    def lay(folder: Path) -> Path:
        (folder / "target").mkdir()
        (folder / "golden.npz").write_bytes(sound.npz())
        (folder / "target" / name).write_bytes(content())
        if name.endswith(".index.json"):
            (folder / "target" / "model.safetensors").write_bytes(sound.safetensors())
        return folder / "target" / name

    return lay


def _of_weights(folder: Path) -> Commands:
    out = ["-o", f"{folder}/out"]
    return [
        ["compare_weights", f"{folder}/target", f"{folder}/golden.npz", *out],
        ["compare_weights", f"{folder}/golden.npz", f"{folder}/target", *out, "--csv"],
    ]


def _index() -> bytes:
    return json.dumps({"weight_map": {"fc.weight": "model.safetensors"}}).encode()


def _beside(name: str, content: bytes) -> Callable[[Path], Path]:
    def lay(folder: Path) -> Path:
        for side in ("target", "golden"):
            sound.dump(folder / side)
        (folder / name).write_bytes(content)
        return folder / name

    return lay


def _given(flag: str, name: str) -> Callable[[Path], Commands]:
    return lambda folder: [_compare(folder, flag, f"{folder}/{name}")]


def _compare_json(folder: Path) -> Path:
    _beside("compare.json", b"")(folder)
    paths = {"npu_path": f"{folder}/target/dump.json", "bench_path": f"{folder}/golden/dump.json"}
    (folder / "compare.json").write_text(json.dumps(paths))
    return folder / "compare.json"


def _of_compare_json(folder: Path) -> Commands:
    return [["compare", "-i", f"{folder}/compare.json", "-o", f"{folder}/out"]]


def _tables(name: str, content: Callable[[], bytes]) -> Callable[[Path], Path]:
    def lay(folder: Path) -> Path:
        (folder / "tables").mkdir()
        for rank in (1, 2):
            (folder / "tables" / f"compare_result_rank{rank}_20260101000000.csv").write_bytes(sound.table_csv())
        (folder / "merge.yaml").write_bytes(sound.MERGE_CONFIG)
        (folder / "tables" / name).write_bytes(content())
        return folder / "tables" / name

    return lay


def _of_tables(folder: Path) -> Commands:
    return [["merge_result", "-i", f"{folder}/tables", "-o", f"{folder}/out", "-config", f"{folder}/merge.yaml"]]


def _merge_yaml(folder: Path) -> Path:
    _tables("compare_result_rank0_20260101000000.csv", sound.table_csv)(folder)
    return folder / "merge.yaml"


def _config(folder: Path) -> Path:
    # A module that does not exist: no attack gets as far as that.
    (folder / "config.json").write_bytes(sound.CONFIG)
    return folder / "config.json"


def _of_config(folder: Path) -> Commands:
    return [["run", "--config", f"{folder}/config.json", f"{folder}/no_such_script.py"]]


def _kernel_file(name: str, suffix: str = "npy") -> Callable[[Path], Path]:
    def lay(folder: Path) -> Path:
        sound.kernels(folder / "golden")
        root = sound.kernels(folder / "target", suffix)
        (found,) = root.glob(f"rank_0/{name}")
        return found

    return lay


def _of_kernels(folder: Path) -> Commands:
    return [
        ["index", f"{folder}/target", "-o", f"{folder}/out/index"],
        _compare(folder),
        _swapped(folder),
        ["overflow_check", "-i", f"{folder}/target/rank_0/Net/0/0", "-o", f"{folder}/out"],
        ["recover", f"{folder}/target"],
        _view(folder),
    ]


def _precheck(name: str, content: bytes) -> Callable[[Path], Path]:
    def lay(folder: Path) -> Path:
        for side in ("target.csv", "golden.csv"):
            (folder / side).write_bytes(sound.precheck_csv())
        (folder / "t.yaml").write_bytes(sound.PRECHECK_THRESHOLDS)
        (folder / name).write_bytes(content)
        return folder / name

    return lay


def _of_precheck(folder: Path) -> Commands:
    sides = f"{folder}/target.csv", f"{folder}/golden.csv"
    more = ["-o", f"{folder}/out", "--thresholds", f"{folder}/t.yaml"]
    return [
        ["api_precision_compare", "-tp", one, "-gp", other, *more, "--profile", profile]
        for one, other in (sides, sides[::-1])
        for profile in ("own", "v110", "latest")
    ]


def _proved(name: str) -> Callable[[Path], Path]:
    return lambda folder: sound.proved(folder) / name


def _of_proved(folder: Path) -> Commands:
    sides = ["-tp", f"{folder}/target", "-gp", f"{folder}/golden", "--node", sound.PROVED, "-o", f"{folder}/out"]
    return [
        ["prove", f"{folder}/report"],
        ["prove", *sides],
        ["prove", *sides[4:6], f"{folder}/target"],
    ]


def _gradients(name: str) -> Callable[[Path], Path]:
    def lay(folder: Path) -> Path:
        for side in ("target", "golden"):
            place = folder / side / "rank0"
            (place / "step0").mkdir(parents=True)
            (place / "grad_summary_0.csv").write_bytes(sound.GRADIENT_TABLE)
            (place / "step0" / "fc.weight.npy").write_bytes(sound.npy(np.ones((3, 4), bool)))
        return folder / "target" / "rank0" / name

    return lay


def _of_gradients(folder: Path) -> Commands:
    sides = f"{folder}/target", f"{folder}/golden"
    return [["grad_compare", *each, "-o", f"{folder}/out"] for each in (sides, sides[::-1])]


def _logits(suffix: str, content: Callable[[], bytes]) -> Callable[[Path], Path]:
    def lay(folder: Path) -> Path:
        for side in ("target", "golden"):
            (folder / side).mkdir()
            for token in range(2):
                (folder / side / f"logits_a_{token}.{suffix}").write_bytes(content())
        return folder / "target" / f"logits_a_0.{suffix}"

    return lay


def _of_logits(folder: Path) -> Commands:
    return [_compare(folder, "-cl", "token"), [*_swapped(folder), "-cl", "logits"]]


def _collection(folder: Path) -> Path:
    for side in ("target", "golden"):
        (folder / f"{side}.json").write_bytes(sound.COLLECTION)
    return folder / "target.json"


def _of_collection(folder: Path) -> Commands:
    return [["config_check", "-c", f"{folder}/target.json", f"{folder}/golden.json", "-o", f"{folder}/out"]]


def _launch_file(folder: Path) -> Path:
    (folder / "train.yaml").write_bytes(b"optimizer: {lr: 1.0e-4}\nseed: 1\n")
    return folder / "train.yaml"


def _of_launch_file(folder: Path) -> Commands:
    return [["config_check", "-d", f"{folder}/train.yaml", "-o", f"{folder}/out.zip"]]


def _hand_made_pairs(folder: Path) -> Path:
    for side in ("golden", "mine"):
        (folder / f"{side}.npy").write_bytes(sound.npy())
    (folder / "metadata.json").write_bytes(b'{"data": {"0": ["golden.npy", "mine.npy"]}}')
    return folder / "metadata.json"


def _of_pairs(folder: Path) -> Commands:
    return [["compare", "-tp", f"{folder}/mine.npy", "-gp", f"{folder}/metadata.json", "-o", f"{folder}/out"]]


def _device_dump(folder: Path) -> Path:
    (folder / "dump").mkdir()
    file = folder / "dump" / "Conv2D.conv1.3.2.1700000000000000"
    blocks = np.ones((1, 1, 2, 2, 16), np.float16)
    file.write_bytes(
        device_file(
            of("input", blocks, 2, 3, (1, 2, 2, 3)),
            of("output", np.ones((1, 2, 2, 3), np.float32), 1, 1),
            Tensor("space", b"bytes"),
        )
    )
    return file


def _of_device_dump(folder: Path) -> Commands:
    command = ["convert", "-d", f"{folder}/dump", "-out", f"{folder}/out", "--overwrite"]
    return [command, [*command, "-f", "NHWC"], [*command, "-t", "txt"]]


_FIRST = "dump_tensor_data/0.input"

READERS: Sequence[Reader] = (
    Reader("dump.json", _in_dump("dump.json"), _of_dump),
    Reader("stack.json", _in_dump("stack.json"), _of_dump),
    Reader("construct.json", _in_dump("construct.json"), _of_dump),
    Reader("journal", _journal, _of_journal),
    Reader("npy", _in_dump(f"{_FIRST}.npy"), _of_tensor),
    Reader("pt", _in_dump(f"{_FIRST}.pt", "pt"), _of_tensor),
    Reader("bin", _in_dump(f"{_FIRST}.bin", "bin"), _of_tensor),
    Reader("safetensors", _weights("model.safetensors", sound.safetensors), _of_weights),
    Reader("ckpt", _weights("net.ckpt", sound.ckpt), _of_weights),
    Reader("npz", _weights("net.npz", sound.npz), _of_weights),
    Reader("state dict", _weights("net.pt", sound.state_dict), _of_weights),
    Reader("weight index", _weights("model.safetensors.index.json", _index), _of_weights),
    Reader("layer mapping", _beside("m.yaml", sound.LAYER_MAPPING), _given("-lm", "m.yaml")),
    Reader("cell mapping", _beside("m.yaml", sound.CELL_MAPPING), _given("-cm", "m.yaml")),
    Reader("data mapping", _beside("m.yaml", sound.DATA_MAPPING), _given("-dm", "m.yaml")),
    Reader("api mapping", _beside("m.yaml", sound.API_MAPPING), _given("-am", "m.yaml")),
    Reader("operation mapping", _beside("op.json", b'{"Dense": ["Dense"]}'), _given("-mf", "op.json")),
    Reader("hand-made pairs", _hand_made_pairs, _of_pairs),
    Reader("thresholds", _beside("t.yaml", sound.THRESHOLDS), _given("--thresholds", "t.yaml")),
    Reader("compare.json", _compare_json, _of_compare_json),
    Reader("merge config", _merge_yaml, _of_tables),
    Reader("csv table", _tables("compare_result_rank0_20260101000000.csv", sound.table_csv), _of_tables),
    Reader("xlsx table", _tables("compare_result_rank0_20260101000000.xlsx", sound.table_xlsx), _of_tables),
    Reader("precheck table", _precheck("target.csv", sound.precheck_csv()), _of_precheck),
    Reader("precheck thresholds", _precheck("t.yaml", sound.PRECHECK_THRESHOLDS), _of_precheck),
    Reader("config", _config, _of_config),
    Reader("proved dump", _proved("target/dump.json"), _of_proved),
    Reader("proved tensor", _proved(f"target/{_FIRST}.npy"), _of_proved),
    Reader("report", _proved("report/compare_summary_1.json"), _of_proved),
    Reader("report page", _proved("report/compare_report_1.html"), _of_proved),
    Reader("kernel npy", _kernel_file("Net/0/0/*.1000.*.npy"), _of_kernels),
    Reader("kernel bin", _kernel_file("Net/0/0/*.1000.*.bin", "bin"), _of_kernels),
    Reader("mapping.csv", _kernel_file("Net/0/0/mapping.csv"), _of_kernels),
    Reader("statistic.csv", _kernel_file("Net/0/0/statistic.csv"), _of_kernels),
    Reader("execution order", _kernel_file("execution_order/*.csv"), _of_kernels),
    Reader("gradient table", _gradients("grad_summary_0.csv"), _of_gradients),
    Reader("gradient directions", _gradients("step0/fc.weight.npy"), _of_gradients),
    Reader("logits", _logits("npy", sound.npy), _of_logits),
    Reader("logits of torch", _logits("pt", sound.pt), _of_logits),
    Reader("collection", _collection, _of_collection),
    Reader("launch file", _launch_file, _of_launch_file),
    Reader("device dump", _device_dump, _of_device_dump),
    Reader("graph", _kernel_file("graphs/*.ir"), _of_kernels),
    Reader("kernel metadata", _kernel_file(".dump_metadata/*.json"), _of_kernels),
)
BY_KIND = {reader.kind: reader for reader in READERS}
