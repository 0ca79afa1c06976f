"""Leaves made as text are those that are made of figures, with a file and without."""

from __future__ import annotations

import numpy as np
import pytest

from msprobe_ms.arrays.one_pass import elements_of, is_built
from msprobe_ms.arrays.statistics import summary
from msprobe_ms.dump.writing.json_text import LEAF_LEVEL, TensorLeaf, value_text, with_file
from msprobe_ms.recording.output.leaf_texts import LeafTexts

pytestmark = pytest.mark.skipif(not is_built(), reason="the extension is not built")

ARRAYS = (np.arange(12, dtype=np.float32).reshape(3, 4), np.array([np.nan, 1.0]), np.array(True), np.arange(5).T)


@pytest.mark.parametrize("sketch", [True, False])
@pytest.mark.parametrize("requires_grad", [True, False, None])
@pytest.mark.parametrize("file", [None, 'Cell.a"ü.forward.0.input.0.npy'])
def test_texts_are_those_of_leaves(sketch: bool, requires_grad: bool | None, file: str | None) -> None:
    texts = LeafTexts("torch.Tensor", sketch=sketch)
    for array in ARRAYS:
        elements = elements_of(array)
        assert elements is not None
        elements = elements._replace(dtype="float32")
        figures, sketched = summary(array)
        leaf = TensorLeaf(
            "torch.Tensor", "float32", array.shape, *figures, requires_grad, file, sketch=sketched if sketch else None
        )
        found = with_file(texts.of(elements, None), requires_grad, file)
        assert found.decode() == value_text(leaf, LEAF_LEVEL)
        assert file is not None or found == texts.of(elements, requires_grad)
