"""The examples of docs/mapping.md are files people copy: each is read and does what the page says."""

from __future__ import annotations

import re

from built_dumps import dump, module_calls, paired
from repository import ROOT

from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import load_mappings

PAGE = (ROOT / "docs" / "mapping.md").read_text()
EXAMPLES = re.findall(r"^ *```yaml\n(.*?)^ *```", PAGE, re.MULTILINE | re.DOTALL)


def test_every_example_is_accepted(tmp_path):
    path = tmp_path / "example.yaml"
    kinds = []
    for text in EXAMPLES:
        path.write_text(text)
        lines = [line for line in text.splitlines() if line and not line.startswith("#")]
        kind = "layer" if lines[-1].startswith(" ") else "cell"
        kind = "api" if "ms_api" in text else "data" if "forward" in text else kind
        load_mappings(**{kind: path})
        kinds.append(kind)
    assert kinds == ["layer", "layer", "cell", "data", "data", "api", "layer", "layer", "layer"]


def test_the_first_example_pairs_what_the_page_says(tmp_path):
    path = tmp_path / "layer.yaml"
    path.write_text(EXAMPLES[0])
    ours = (
        ("backbone.0", "EncoderLayer"),
        ("backbone.0.attention", "Attention"),
        ("backbone.0.attention.out_proj", "Dense"),
    )
    target = dump("mindspore", *(call for module in ours for call in module_calls("Cell", *module)))
    golden = dump("pytorch", *module_calls("Module", "module.encoder.0.self_attention.dense", "Linear"))
    found = paired(pair(target, golden, load_mappings(layer=path)))
    ours_name = "Cell.backbone.0.attention.out_proj.Dense"
    theirs_name = "Module.module.encoder.0.self_attention.dense.Linear"
    ways = ("forward", "backward", "parameters_grad")
    assert found == {f"{ours_name}.{way}.0": f"{theirs_name}.{way}.0" for way in ways}
