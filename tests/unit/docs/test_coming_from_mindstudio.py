"""The page for those who come from MindStudio: its commands run, its tables are those of the code."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from msprobe_ms.arrays.device_dump import DTYPES, FORMATS
from msprobe_ms.arrays.layouts import pack, targets
from msprobe_ms.cli.main import main
from tests.attacks import sound
from tests.device_files import Tensor, device_file, of

PAGE = Path(__file__).parents[3] / "docs" / "coming_from_mindstudio.md"
TEXT = PAGE.read_text(encoding="utf-8")
COMMANDS = "".join(re.findall(r"```bash\n(.*?)```", TEXT, re.DOTALL)).splitlines()
CONVOLUTION, ADDITION = "Conv2D.conv1.3.2.1700000000000000", "Add.add1.4.2.1700000000000001"


def test_every_command_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    image = np.arange(1, 205, dtype=np.float16).reshape(2, 17, 3, 2)
    matrix = np.arange(1, 701, dtype=np.float32).reshape(20, 35)
    blocks = of("input", pack(image, "NCHW", "NC1HWC0", 16), 2, 3, image.shape)
    Path("dump").mkdir()
    Path("dump", CONVOLUTION).write_bytes(device_file(blocks, Tensor("space", b"bytes")))
    Path("dump", ADDITION).write_bytes(device_file(of("output", pack(matrix, "ND", "FRACTAL_NZ", 16), 1, 29)))
    for side in ("target", "golden"):
        sound.dump(Path(side))
    for command in COMMANDS:
        program, *arguments = shlex.split(command)
        assert program == "msprobe"
        assert main(arguments) == 0, command
    assert {file.name for file in Path("npy").iterdir()} == {
        f"{CONVOLUTION}.input.0.npy", f"{CONVOLUTION}.space.0.bin", f"{ADDITION}.output.0.npy"
    }  # fmt: skip
    nhwc = np.load(f"nhwc/{CONVOLUTION}.input.0.2x3x2x17.npy")
    np.testing.assert_array_equal(nhwc, image.transpose(0, 2, 3, 1))
    np.testing.assert_array_equal(np.load(f"nd/{ADDITION}.output.0.20x35.npy"), matrix)
    assert Path("text", f"{ADDITION}.output.0.txt").is_file()
    (advice,) = Path("report").glob("advisor_*.txt")
    assert advice.read_text().startswith(
        "Detection Type: global consistency\nOperator Index: NA\n"
        "Expert Advice: All data in the comparison result meets the accuracy requirements. "
    )


def test_the_tables_are_what_is_read() -> None:
    dtypes = re.findall(r"^\| (\d+) \| (\w+) \|$", TEXT, re.MULTILINE)
    assert {int(number): name for number, name in dtypes} == DTYPES
    layouts = re.findall(r"^\| (\d+) \| (\w+) \| (.+) \|$", TEXT, re.MULTILINE)
    assert {int(number): name for number, name, _ in layouts} == FORMATS
    assert {name: told.split(", ") for _, name, told in layouts} == {name: targets(name) for name in FORMATS.values()}
