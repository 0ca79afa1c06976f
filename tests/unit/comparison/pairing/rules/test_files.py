"""Mapping files: what is read, and the exact words about what cannot be."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msprobe_ms.comparison.pairing.rules import files
from msprobe_ms.comparison.pairing.rules.files import Mappings, load_mappings
from msprobe_ms.support.errors import MappingError


@pytest.fixture
def write(tmp_path: Path):
    def _write(text: str | bytes, name: str = "map.yaml") -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return _write


def refusal(**given) -> str:
    with pytest.raises(MappingError) as caught:
        load_mappings(**given)
    return str(caught.value)


def test_nothing_given_renames_nothing():
    assert load_mappings() == Mappings(cell=None, layer={}, data={})


def test_bare_cell_flag_is_an_empty_cell_mapping():
    assert load_mappings(cell=True).cell == {}


def test_cell_mapping_takes_names_with_and_without_prefix(write):
    path = write("fc2.Dense: fc2.Linear\nCell.conv1.Conv2d: Module.conv3.Conv2d\n")
    assert load_mappings(cell=path).cell == {"fc2.Dense": "fc2.Linear", "conv1.Conv2d": "conv3.Conv2d"}


def test_layer_mapping_of_both_ages(write):
    text = """
TopLayer: {network_with_loss: module}
ParallelTransformer:
  layers.0: layers.2
  layers: h(TransformerBlock)
layers: {'5': '0', 6: 1}
Empty:
"""
    expected = {
        "TopLayer": {"network_with_loss": "module"},
        "ParallelTransformer": {"layers.0": "layers.2", "layers": "h"},
        "layers": {"5": "0", "6": "1"},
        "Empty": {},
    }
    assert load_mappings(layer=write(text)).layer == expected
    assert load_mappings(layer=write(text.replace("TopLayer", "Cell"))).layer == expected


def test_top_level_under_both_names_is_one(write):
    path = write("Cell: {a: b}\nTopLayer: {c: d}\n")
    assert load_mappings(layer=path).layer == {"TopLayer": {"a": "b", "c": "d"}}


def test_top_level_under_both_names_must_agree(write):
    assert "TopLayer and Cell mean the same and disagree here" in refusal(
        layer=write("Cell: {a: b}\nTopLayer: {a: c}\n")
    )


def test_names_keep_their_spelling(write):
    """yaml would make False of no and 100.0 of 1e2; they are names here."""
    path = write("Block: {no: yes, 1e2: 007}\n")
    assert load_mappings(layer=path).layer == {"Block": {"no": "yes", "1e2": "007"}}


def test_byte_order_mark_and_windows_line_ends(write):
    assert load_mappings(data=write(b"\xef\xbb\xbfa: b\r\nc: d\r\n")).data == {"a": "b", "c": "d"}
    assert load_mappings(data=write("a: b\r\nc: d\r\n".encode("utf-16"))).data == {"a": "b", "c": "d"}


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "~\n"])
def test_an_empty_file_is_an_empty_mapping_and_said(write, caplog, monkeypatch, text):
    monkeypatch.setattr(logging.getLogger("msprobe_ms"), "propagate", True)
    path = write(text)
    assert load_mappings(data=path).data == {}
    assert f"data mapping {path} is empty: nothing is renamed by it" in caplog.text


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("cell", "a: b\na: c\n", "a (line 2): this key appears twice"),
        ("cell", "a: [b]\n", "a (line 1): a list where one golden name is expected"),
        ("cell", "a:\n", "a (line 1): nothing where one golden name is expected"),
        ("cell", "a: ''\n", "a (line 1): nothing where one golden name is expected"),
        ("cell", "a: {b: c}\n", "a (line 1): a mapping where one golden name is expected"),
        ("data", "- a\n- b\n", "line 1: a list where names are mapped to names"),
        ("data", "just text\n", "line 1: the text 'just text' where names are mapped to names"),
        ("data", "? [a, b]\n: c\n", "line 1: a list as a key; a key is a name"),
        ("data", "x: &x y\nz: *x\n", "z (line 2): a yaml alias where one golden name is expected"),
        ("data", "a: b\n---\nc: d\n", "line 2: a second document; one is read"),
        (
            "data",
            "a: b\n  c: : d\n",
            "line 2, column 4: this is not yaml: mapping values are not allowed in this context",
        ),
        ("data", "<<: {a: b}\n", "line 1: the text '<<' as a key"),
        ("layer", "fc1: fc2\n", "fc1 (line 1): the text 'fc2' where the renamed children of this class are expected"),
        ("layer", "Net:\n  a: {b: c}\n", "Net → a (line 2): a mapping where one golden name is expected"),
        ("layer", "Net: {a: '(Linear)'}\n", "Net.a: 'a': '(Linear)' is no dotted module name"),
        ("layer", "Net: {a..b: c}\n", "'a..b': 'c' is no dotted module name"),
        ("layer", "Net: !!python/object/apply:os.system [x]\n", "a list where the renamed children"),
    ],
)
def test_refusals_name_file_key_and_example(write, kind, text, said):
    path = write(text)
    message = refusal(**{kind: path})
    assert message.startswith(f"{kind} mapping {path}: ")
    assert said in message
    assert "Accepted: a" in message
    assert "for example" in message


def test_missing_file_folder_and_wrong_encoding(tmp_path, write):
    missing = tmp_path / "no.yaml"
    assert refusal(cell=missing) == (
        f"cell mapping {missing}: cannot be read: No such file or directory; a readable yaml file is needed"
    )
    assert "Is a directory" in refusal(layer=tmp_path)
    assert "line 2 is not UTF-8 text; save the file as UTF-8" in refusal(data=write(b"a: b\n\xff: c\n"))


def test_a_file_beyond_the_bound_is_refused(write, monkeypatch):
    monkeypatch.setattr(files, "LARGEST_FILE", 2 * 1024 * 1024)
    assert "larger than 2 MiB, the most that is read" in refusal(data=write("a" * (2 * 1024 * 1024 + 1)))


@pytest.mark.parametrize("bomb", ["[" * 200_000, "{a: " * 200_000, "- " * 100_000, "? " * 100_000])
def test_deep_nesting_is_refused_without_recursion(write, bomb):
    assert refusal(layer=write(bomb)).startswith("layer mapping ")


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_read_or_refused_in_one_error(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(content)
    for kind in ("cell", "layer", "data"):
        with suppress(MappingError):
            load_mappings(**{kind: path})
