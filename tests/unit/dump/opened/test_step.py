"""``load``: any dump, opened without a framework, by the folder, or by its step and rank."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import msprobe_ms
from msprobe_ms.support.errors import DumpFormatError, MissingTensorError, UsageError
from msprobe_ms.support.translation import speaking

ROOT = Path(__file__).parents[4]
GOLDEN = ROOT / "samples" / "golden"
RANK = GOLDEN / "step0" / "rank0"


@pytest.mark.parametrize("path", [GOLDEN, GOLDEN / "step0", RANK, RANK / "dump.json", str(GOLDEN)])
def test_a_dump_opens_by_any_of_its_folders(path: Path | str) -> None:
    dump = msprobe_ms.load(path)
    assert dump.path == RANK
    name = next(each for each in dump if ".Linear.forward." in each)
    call = dump[name]
    assert call.parent in dump and any(".py" in line for line in call.stack)
    assert call["output.0"].shape and call["output.0"].dtype == "torch.float32"
    assert np.isfinite(call["output.0"].mean)
    with pytest.raises(MissingTensorError, match="no tensor was stored"):
        call["output.0"].numpy()
    assert len(dump) == len(list(dump)) > 20
    assert repr(dump).startswith(f"{len(dump)} entries in {RANK}\n  Module.")
    assert "<table" in dump._repr_html_()


def test_of_several_dumps_one_is_chosen(tmp_path: Path) -> None:
    for step, rank in ((0, 0), (0, 1), (2, 0)):
        shutil.copytree(RANK, tmp_path / f"step{step}" / f"rank{rank}")
    assert msprobe_ms.load(tmp_path, step=2).path == tmp_path / "step2" / "rank0"
    assert msprobe_ms.load(tmp_path, step=0, rank=1).path == tmp_path / "step0" / "rank1"
    held = f"load: {tmp_path} holds 3 dumps: step0 rank0, step0 rank1, step2 rank0"
    how = "; choose one with step= and rank=, or name its folder"
    with pytest.raises(UsageError) as several:
        msprobe_ms.load(tmp_path)
    assert str(several.value) == f"{held}{how}"
    with pytest.raises(UsageError) as none:
        msprobe_ms.load(tmp_path, step=2, rank=1)
    assert str(none.value) == f"{held}, 0 of them of step 2 and rank 1{how}"
    shutil.rmtree(tmp_path / "step0" / "rank1")
    with pytest.raises(UsageError, match="choose one with step=, or name its folder"):
        msprobe_ms.load(tmp_path)
    with pytest.raises(DumpFormatError, match="no such file or folder"):
        msprobe_ms.load(tmp_path / "step9")
    with pytest.raises(UsageError, match="load: list is not accepted; give the path"):
        msprobe_ms.load([tmp_path])  # type: ignore[arg-type]


def test_what_load_gave_can_be_compared() -> None:
    dump = msprobe_ms.load(GOLDEN)
    msprobe_ms.assert_consistent(dump, GOLDEN)
    msprobe_ms.assert_consistent(dump, dump)


@pytest.mark.parametrize("asked", ["final_norm", "Final_Norm.LayerNorm", "final_nrom"])
def test_a_part_of_a_name_leads_to_the_entries_that_have_it(asked: str) -> None:
    dump = msprobe_ms.load(GOLDEN)
    name = next(each for each in dump if "norm" in each.lower())
    part = name.split(".")[-4]
    asked = {"final_norm": part, "Final_Norm.LayerNorm": part.upper(), "final_nrom": part[:-1] + "x"}[asked]
    with pytest.raises(KeyError) as missing:
        dump[asked]
    assert "was not recorded; did you mean" in str(missing.value)
    assert f".{part}." in str(missing.value).partition("did you mean")[2]


def test_in_chinese_it_is_told_in_chinese() -> None:
    dump = msprobe_ms.load(GOLDEN)
    with speaking("zh"):
        assert f"{len(dump)} 个条目" in str(dump)
        with pytest.raises(KeyError, match="没有采集"):
            dump["zzzzzzz"]


def test_a_name_like_none_has_no_proposal() -> None:
    with pytest.raises(KeyError) as missing:
        msprobe_ms.load(GOLDEN)["zzzzzzz"]
    assert str(missing.value) == "\"'zzzzzzz' was not recorded\""


def test_the_full_name_of_a_value_is_told_as_call_and_value() -> None:
    """compare prints values by one name; ``load`` has calls, and their values in them."""
    dump = msprobe_ms.load(GOLDEN)
    name = next(each for each in dump if ".Linear.forward." in each)
    with pytest.raises(KeyError) as there:
        dump[f"{name}.output.0"]
    assert f'; it is a value of that call: dump["{name}"]["output.0"]' in str(there.value)
    with pytest.raises(KeyError) as none:
        dump[f"{name}.output.9"]
    assert f"; the call {name} has {', '.join(list(dump[name])[:2])}" in str(none.value)
    with pytest.raises(KeyError, match="did you mean"):
        dump[name.replace("Linear", "Linaer")]
