"""One API on its examples: MindSpore in float32 against its twin in float64, forward and backward."""

from __future__ import annotations

import inspect
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.dump.dialects import PRIMITIVE
from msprobe_ms.frameworks import runner
from msprobe_ms.frameworks.api_calls import (
    ApiOutcome,
    ApiRunner,
    Arguments,
    DtypeArgument,
    NoGradientError,
    NoKernelError,
)
from torture.api_sweep import convolution, elementwise, pytorch_only, structural, variants
from torture.api_sweep.examples import Example, examples_of

#: Error, as a share of the largest value, that single precision may have in an API that is right.
TOLERANCE = 2e-4

AGREES, DIFFERS, NO_KERNEL, RAISES, TWIN_RAISES = "agrees", "differs", "no kernel", "raises", "twin raises"
NOT_FOUND, NO_TWIN, NO_EXAMPLE, NO_GRADIENT, NOTHING = "not found", "no twin", "no example", "no gradient", "-"


class Found(NamedTuple):
    """What one example showed, forward and backward; ``error`` is the larger of both, a share of the largest value."""

    forward: str
    backward: str = NOTHING
    error: float = 0.0
    detail: str = ""


@cache
def tables() -> Mapping[str, tuple[Example, ...]]:
    modules = (elementwise, structural, convolution, pytorch_only)
    found = [item for module in modules for item in module.EXAMPLES.items()]
    merged = dict(found)
    if len(merged) != len(found):
        raise ValueError("examples of one name are in two tables")
    return merged


def _examples(prefix: str, api: str) -> tuple[Example, ...]:
    """Examples of a MindSpore API, and variants of them."""
    return examples_of(tables(), "mindspore", prefix, api) + variants.EXAMPLES.get(f"{prefix}.{api}", ())


def run_alone(prefix: str, api: str) -> list[Found]:
    """Return whether a PyTorch API runs on each of its examples, with gradients; nothing is compared."""
    torch = runner_of("pytorch")
    function = torch.find(prefix, api)
    if function is None:
        return [Found(NOT_FOUND)]
    found = []
    for number, each in enumerate(examples_of(tables(), "pytorch", prefix, api)):
        arguments = each.arguments(f"{prefix}.{api}.{number}")
        try:
            outputs = torch.run(function, arguments).outputs
            seeds = [_seed(output, place) for place, output in enumerate(outputs)]
        except Exception as error:
            found.append(Found(NO_KERNEL if isinstance(error, NoKernelError) else RAISES, detail=_short(error)))
            continue
        try:
            torch.run(function, arguments, seeds)
            found.append(Found(AGREES, AGREES if any(seed is not None for seed in seeds) else NOTHING))
        except NoGradientError as error:
            found.append(Found(AGREES, NO_GRADIENT, detail=_short(error)))
        except Exception as error:
            found.append(Found(AGREES, RAISES, detail=_short(error)))
    return found or [Found(NO_EXAMPLE)]


def raised(value: Any) -> Any:
    """Return arguments with their floats as float64."""
    if isinstance(value, TypedArray):
        wider = {"float32": "float64", "float16": "float64"}.get(value.dtype)
        return value if wider is None else TypedArray(wider, value.values.astype(wider))
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return type(value)(raised(each) for each in value)
    return value


def check(prefix: str, api: str) -> list[Found]:
    """Return what each example of a MindSpore API showed, the first two kinds of which need no example."""
    mindspore, torch = runner_of("mindspore"), runner_of("pytorch")
    function, twin = mindspore.find(prefix, api), torch.twin(prefix, api)  # type: ignore[attr-defined]
    if twin is None:
        return [Found(NO_TWIN)]
    if function is None:
        return [Found(NOT_FOUND)]
    examples = _examples(prefix, api)
    if not examples:
        return [Found(NO_EXAMPLE)]
    calls = [each.arguments(f"{prefix}.{api}.{number}") for number, each in enumerate(examples)]
    found = [_compare(mindspore, function, torch, twin, arguments) for arguments in calls]
    if prefix == PRIMITIVE:  # which takes its arguments in their order
        return found
    names = _compare_names(function, torch, twin, calls[0], method=prefix == "Tensor")
    return [*found, names] if names is not None else found


def _compare_names(function: Any, torch: ApiRunner, twin: Any, arguments: Arguments, *, method: bool) -> Found | None:
    """Call the twin with every argument by the name that MindSpore has for it; None where that works, or is unknown."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError:
        return None
    plain = [each for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    if len(plain) < len(arguments.positional) or any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return None
    first = 1 if method else 0
    rest = {name: raised(value) for name, value in arguments.keywords.items()}
    defaults = [_plain(each.default) for each in plain[len(arguments.positional) :] if each.name not in rest]
    by_name = dict(zip([each.name for each in plain[first:]], arguments.positional[first:], strict=False))
    wide = Arguments(raised(arguments.positional[:first]), {name: raised(value) for name, value in by_name.items()})
    try:
        named = torch.run(twin, Arguments(wide.positional, {**wide.keywords, **rest}))
        expected = torch.run(twin, Arguments(raised(arguments.positional), rest))
        if not rest:  # with the defaults that MindSpore has
            full = torch.run(twin, Arguments((*raised(arguments.positional), *defaults)))
            error, detail = distance(expected.outputs, full.outputs)
            if error > TOLERANCE:
                return Found(DIFFERS, error=error, detail=f"with defaults {defaults}: {detail}")
    except Exception as error:
        return Found(TWIN_RAISES, detail=f"{sorted(by_name)}, defaults {defaults}: {_short(error)}")
    error, detail = distance(expected.outputs, named.outputs)
    return Found(DIFFERS, error=error, detail=f"by names: {detail}") if error > TOLERANCE else None


@cache
def runner_of(framework: str) -> ApiRunner:
    return runner(framework)


def _plain(default: Any) -> Any:
    """A default of MindSpore's; a dtype by its name."""
    text = str(default)
    is_dtype = type(default).__module__.endswith("typing")
    return DtypeArgument(parse_dtype(text).name) if is_dtype else default


def _compare(mindspore: ApiRunner, function: Any, torch: ApiRunner, twin: Any, arguments: Arguments) -> Found:
    wide = Arguments(raised(arguments.positional), {key: raised(value) for key, value in arguments.keywords.items()})
    try:
        bench = torch.run(twin, wide)
    except Exception as error:
        return Found(TWIN_RAISES, detail=_short(error))
    try:
        device = mindspore.run(function, arguments)
    except NoKernelError as error:
        return Found(NO_KERNEL, detail=_short(error))
    except Exception as error:
        return Found(RAISES, detail=_short(error))
    error, detail = distance(bench.outputs, device.outputs)
    if error > TOLERANCE:
        return Found(DIFFERS, error=error, detail=detail)
    return _compare_gradients(mindspore, function, torch, twin, arguments, wide, device, error)


def _compare_gradients(
    mindspore: ApiRunner,
    function: Any,
    torch: ApiRunner,
    twin: Any,
    arguments: Arguments,
    wide: Arguments,
    device: ApiOutcome,
    forward: float,
) -> Found:
    seeds = [_seed(output, number) for number, output in enumerate(device.outputs)]
    if all(seed is None for seed in seeds):
        return Found(AGREES, error=forward)
    try:
        bench = torch.run(twin, wide, [None if seed is None else raised(seed) for seed in seeds])
    except Exception as error:
        return Found(AGREES, NO_GRADIENT, forward, f"twin: {_short(error)}")
    try:
        found = mindspore.run(function, arguments, seeds)
    except NoGradientError as error:
        return Found(AGREES, NO_GRADIENT, forward, _short(error))
    except NoKernelError as error:
        return Found(AGREES, NO_KERNEL, forward, _short(error))
    except Exception as error:
        return Found(AGREES, RAISES, forward, _short(error))
    pairs = [_with_zeros(one, other) for one, other in zip(bench.gradients, found.gradients, strict=True)]
    error, detail = distance([one for one, _ in pairs], [other for _, other in pairs])
    return Found(AGREES, DIFFERS if error > TOLERANCE else AGREES, max(error, forward), detail)


def _seed(output: Any, number: int) -> TypedArray | None:
    """A gradient for an output; None where it has no floats."""
    if not isinstance(output, TypedArray) or not output.dtype.startswith(("float", "bfloat")):
        return None
    generator = np.random.default_rng(zlib.crc32(f"{number}{output.values.shape}".encode()))
    values = generator.uniform(0.5, 1.5, output.values.shape).astype(np.float32)
    return TypedArray(output.dtype, values.astype(output.values.dtype))


def _with_zeros(one: Any, other: Any) -> tuple[Any, Any]:
    """No gradient is a gradient of zeros."""
    if one is None and other is not None:
        one = TypedArray(other.dtype, np.zeros_like(other.values))
    if other is None and one is not None:
        other = TypedArray(one.dtype, np.zeros_like(one.values))
    return one, other


def distance(bench: Sequence[Any], device: Sequence[Any]) -> tuple[float, str]:
    """Return the largest error of any pair, as a share of the largest value of its pair, and a word about it."""
    if len(bench) != len(device):
        return float("inf"), f"{len(device)} results, expected {len(bench)}"
    worst, detail = 0.0, ""
    for number, (one, other) in enumerate(zip(bench, device, strict=True)):
        error, said = _pair(one, other)
        if error > worst:
            worst, detail = error, f"result {number}: {said}"
    return worst, detail


def _pair(one: Any, other: Any) -> tuple[float, str]:
    if not isinstance(one, TypedArray) or not isinstance(other, TypedArray):
        plain = [np.asarray(each.values if isinstance(each, TypedArray) else each) for each in (one, other)]
        same = bool(plain[0].shape == plain[1].shape and np.all(plain[0] == plain[1]))
        return (0.0, "") if same else (float("inf"), f"{other!r}, expected {one!r}"[:200])
    if one.values.shape != other.values.shape:
        return float("inf"), f"shape {other.values.shape}, expected {one.values.shape}"
    wide = [each.values.astype(np.complex128 if each.values.dtype.kind == "c" else np.float64) for each in (one, other)]
    limits = _limits(one.values) & _limits(other.values) & (np.sign(wide[0]) == np.sign(wide[1]))
    with np.errstate(all="ignore"):
        same = (wide[0] == wide[1]) | (np.isnan(wide[0]) & np.isnan(wide[1])) | limits
        apart = np.where(same, 0, np.abs(wide[0] - wide[1]))
    apart = np.where(np.isnan(apart), np.inf, apart)
    finite = np.abs(wide[0])[np.isfinite(wide[0]) & ~limits]
    share = float(apart.max(initial=0.0) / max(float(finite.max(initial=0.0)), 1e-6))
    values = f"{np.ravel(other.values)[:6].tolist()}, expected {np.ravel(one.values)[:6].tolist()}"
    return share, f"off by {share:.3g}: {values}"


def _limits(values: np.ndarray) -> np.ndarray:
    """Where values are the largest of their dtype, which may stand for "none is larger"."""
    return np.abs(values) == np.finfo(values.dtype).max if values.dtype.kind == "f" else np.zeros(values.shape, bool)


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".strip().replace("\n", " ")[:160]
