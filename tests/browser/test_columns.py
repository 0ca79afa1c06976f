"""What Python encodes, the script decodes: bit by bit, whatever the numbers."""

from __future__ import annotations

import json
import re
import subprocess
from base64 import b64decode
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from msprobe_ms.page.columns import NOTHING, Columns, floats
from tests.browser.web import bundled

SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-40, 3.4028235e38, 1.0], np.float32)


def decoded(pages: list[Columns], script: Any) -> list[dict[str, Any]]:
    requests = [
        {"columns": page.index, "chunks": dict(re.findall(r'id="(k\d+)">([^<]*)<', "".join(page.elements())))}
        for page in pages
    ]
    done = subprocess.run(
        ["node", str(script)], input=json.dumps(requests), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return bundled("test/decode.ts", tmp_path_factory.mktemp("decode") / "decode.mjs")


def test_numbers_and_texts_come_back_bit_by_bit(script: Any) -> None:
    """One process decodes all examples: to start one for each would take minutes."""
    pages: list[Columns] = []
    expected: list[dict[str, Any]] = []
    whole = arrays.arrays(st.sampled_from([np.uint8, np.uint16, np.uint32]), st.integers(0, 200))
    text = st.lists(
        st.one_of(st.text(st.characters(exclude_categories=["Cs"])), st.none(), st.integers(-(2**53), 2**53)),
        max_size=5,
    )

    @settings(max_examples=60, phases=[Phase.generate], suppress_health_check=list(HealthCheck), database=None)
    @given(whole, st.booleans(), arrays.arrays(np.uint32, st.integers(0, 200)), st.data())
    def collect(numbers: np.ndarray, delta: bool, bits: np.ndarray, data: st.DataObject) -> None:
        golden, target = bits.view(np.float32), data.draw(arrays.arrays(np.uint32, len(bits))).view(np.float32)
        columns, texts = Columns(), data.draw(text)
        columns.add("whole", numbers, delta=delta and numbers.dtype != np.uint8)
        columns.add("golden", golden)
        columns.add_beside("target", target, "golden", golden)
        columns.add_json("texts", texts)
        pages.append(columns)
        expected.append({"whole": numbers, "golden": golden, "target": target, "texts": texts})

    collect()
    for columns, wanted in zip(decoded(pages, script), expected, strict=True):
        for name in ("whole", "golden", "target"):
            assert b64decode(columns[name]) == wanted[name].tobytes()
        assert columns["texts"] == wanted["texts"]
    assert len(pages) >= 50


def test_columns_of_many_chunks_and_special_numbers_come_back(script: Any) -> None:
    random = np.random.default_rng(1)
    wanted = {
        "many": random.integers(0, 2**32, 200_001, np.uint32),
        "edge": np.arange(65_536, dtype=np.uint16),
        "special": SPECIAL,
        "none": np.full(3, NOTHING, np.uint32).view(np.float32),
        "floats": floats([2.0**53 + 1, 1e300, -1e-300, np.nan], np.array([False, False, False, True])),
    }
    columns = Columns()
    for name, numbers in wanted.items():
        columns.add(name, numbers, delta=name in ("many", "edge"))
    (found,) = decoded([columns], script)
    for name, numbers in wanted.items():
        assert b64decode(found[name]) == numbers.tobytes(), name
