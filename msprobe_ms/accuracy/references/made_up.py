"""Make data that was made up valid: what operators demand of the contents of some arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from msprobe_ms.accuracy.references.attention.flash_attention import flash_attention
from msprobe_ms.accuracy.references.attention.mask import COMPRESSED, UNBOUNDED, Mask
from msprobe_ms.accuracy.references.mixture_of_experts import token_unpermute
from msprobe_ms.accuracy.references.reference import Array, Formula, FusedReference
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.frameworks.api_calls import Arguments


def with_valid_contents(reference: FusedReference, arguments: Arguments) -> Arguments:
    """Return the arguments with contents that the operator accepts, where any values of a dtype would not do: masks
    that a sparse mode prescribes, ends of sequences in order, indices that are a permutation. For tensors that were
    made up from statistics, not for recorded ones.

    :raises NotReproducible: the arguments are not the operator's
    """
    demanded = _DEMANDED.get(reference.formula)
    if demanded is None:
        return arguments
    given = reference.named(arguments)
    contents = demanded(
        {name: value.values if isinstance(value, TypedArray) else value for name, value in given.items()}
    )

    def replaced(own: str, value: Any) -> Any:
        name = reference.names.get(own)
        if name not in contents or not isinstance(value, TypedArray):
            return value
        return TypedArray(value.dtype, contents[name].astype(value.values.dtype).reshape(value.values.shape))

    positional = zip(reference.signature.parameters, arguments.positional, strict=False)
    return Arguments(
        tuple(replaced(own, value) for own, value in positional),
        {name: replaced(reference.own_name(name), value) for name, value in arguments.keywords.items()},
    )


def _of_attention(given: Mapping[str, Any]) -> dict[str, Array]:
    """Ends of sequences that rise to the number of tokens; the mask of the sparse mode; no row without a key."""
    contents: dict[str, Array] = {}
    for name, tokens in (("query_ends", "query"), ("key_ends", "key")):
        if isinstance(given.get(name), np.ndarray):
            ends = np.sort(np.clip(given[name].reshape(-1), 1, len(given[tokens])))
            ends[-1:] = len(given[tokens])
            contents[name] = ends
    mask, mode = given.get("mask"), given.get("sparse_mode", 0)
    if isinstance(mask, np.ndarray) and mask.ndim in (2, 4):
        contents["mask"] = _mask(mask, mode, given)
    return contents


def _mask(mask: Array, mode: int, given: Mapping[str, Any]) -> Array:
    upper = np.triu(np.ones((COMPRESSED, COMPRESSED), bool), 1)
    if mode > 1 and mask.shape == upper.shape:
        return upper
    if mode == 6:
        return np.vstack([upper, np.tile(np.arange(COMPRESSED) >= COMPRESSED // 2, (len(mask) - COMPRESSED, 1))])
    bounds = given.get("before", UNBOUNDED), given.get("after", UNBOUNDED)
    sizes = (mask.shape[-2], mask.shape[-1])
    if mode > 1 or (mode == 0 and min(bounds) < UNBOUNDED):
        batches = len(mask) if mask.ndim == 4 else 1
        by_mode = Mask(np.zeros(sizes, bool), 0 if mode == 0 else mode, *bounds, given.get("prefix"), batches)
        rows = [by_mode.by_mode(each, sizes) for each in range(batches)]
        return np.broadcast_to(np.stack(rows)[:, np.newaxis] if mask.ndim == 4 else rows[0], mask.shape)
    seen = mask == 0
    seen[..., 0] |= ~seen.any(axis=-1)
    return ~seen


def _of_unpermuting(given: Mapping[str, Any]) -> dict[str, Array]:
    """A permutation: the place that each made-up index has among them."""
    indices = given["sorted_indices"].reshape(-1)
    return {"sorted_indices": np.argsort(np.argsort(indices, kind="stable"))}


_DEMANDED: Mapping[Formula, Callable[[Mapping[str, Any]], dict[str, Array]]] = MappingProxyType(
    {flash_attention: _of_attention, token_unpermute: _of_unpermuting}
)
