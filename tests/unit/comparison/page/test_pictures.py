"""Pictures in a page: of the tensors of an origin, with the elements that differ most; none without real data."""

from __future__ import annotations

import json
import re
import shutil
from base64 import b64decode
from pathlib import Path

import numpy as np
from report_page import Page
from repository import DATA

from msprobe_ms.comparison.model import Outcome
from msprobe_ms.comparison.page.report import write_report_to
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.reading.locate import find_dumps
from msprobe_ms.dump.reading.reader import read_dump

LENET = DATA / "golden" / "mindspore_lenet_L1_tensor"


def page_of(target: Path, golden: Path, folder: Path) -> Page:
    ours, theirs = (read_dump(next(iter(find_dumps(path).values()))) for path in (target, golden))
    outcome = Outcome("", ours, theirs, compare_dumps(ours, theirs, Options()), [])
    write_report_to(folder / "page.html", outcome)
    return Page.of(folder / "page.html")


def test_the_tensor_that_differs_is_shown_with_its_worst_elements(tmp_path: Path) -> None:
    target = shutil.copytree(LENET, tmp_path / "target")
    (file,) = target.rglob("Functional.flatten.0.forward.output.0.npy")
    array = np.load(file)
    array[(0,) * array.ndim] += 100
    np.save(file, array)
    path = next(target.rglob("dump.json"))
    content = json.loads(path.read_text())
    leaf = content["data"][file.stem.removesuffix(".output.0")]["output"][0]
    wide = array.astype(np.float64)
    leaf.update(Max=wide.max(), Min=wide.min(), Mean=wide.mean(), Norm=np.linalg.norm(wide.reshape(-1)))
    path.write_text(json.dumps(content))
    page = page_of(target, LENET, tmp_path)
    shown = {page.names()[each["row"]]: each for each in page.column("pictures")}
    found = shown[file.stem]
    assert found["shape"] == list(array.shape)
    assert re.fullmatch(
        r"\d+ of \d+ elements differ: (index 0 of axis \d \(of \d+\) holds 100% of .*)+", found["where"]
    )
    assert found["worst"][0][0] == [0] * array.ndim
    tiles = np.frombuffer(b64decode(found["map"]["data"]), np.uint8)
    assert len(tiles) == found["map"]["rows"] * found["map"]["columns"]
    assert tiles[0] == 254
    assert sum(found["histograms"]["target"]) == sum(found["histograms"]["golden"]) == array.size
    assert len(b64decode(found["scatter"]["data"])) == found["scatter"]["size"] ** 2


def test_where_nothing_differs_nothing_is_read(tmp_path: Path) -> None:
    assert "pictures" not in page_of(LENET, LENET, tmp_path).index["columns"]


def test_statistics_have_no_pictures(tmp_path: Path) -> None:
    dump = DATA / "golden" / "mindspore_lenet_L0_statistics" / "step0"
    assert "pictures" not in page_of(dump, dump, tmp_path).index["columns"]
