"""A script that runs one API alone and holds it against its reference: what goes with a report of a bug.

It needs the framework and numpy, and the files of tensors beside it; nothing of this package.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.frameworks.api_calls import Arguments, DtypeArgument
from msprobe_ms.frameworks.api_lists import recorded_apis
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.translation import tr


class TensorFile(NamedTuple):
    """A tensor that the script loads: the name of a file beside it, and its dtype."""

    name: str
    dtype: str


class ScriptedCall(NamedTuple):
    """One call to write a script of.

    ``arguments``   leaves are ``TensorFile`` instead of tensors
    ``results``     file of the reference for each result; None where it has none
    ``incoming``    gradients with respect to the results, one each; empty: no backward
    ``gradients``   file of the reference for each floating-point tensor among the arguments
    """

    name: str
    framework: str
    prefix: str
    api: str
    arguments: Arguments
    results: Sequence[str | None] = ()
    incoming: Sequence[TensorFile | None] = ()
    gradients: Sequence[str | None] = ()


class _Spelling(NamedTuple):
    """How a script says things in one framework."""

    package: str
    prefixes: Mapping[str, str]
    helpers: str


_MINDSPORE = _Spelling(
    "mindspore",
    {
        "Functional": "mindspore.ops", "Mint": "mindspore.mint", "MintFunctional": "mindspore.mint.nn.functional",
        "Tensor": "mindspore.Tensor",
    },
    '''\
import mindspore

mindspore.runtime.launch_blocking()  # an error belongs to its own call


def tensor(name, dtype):
    return mindspore.Tensor(np.load(FOLDER / name), getattr(mindspore, "bool_" if dtype == "bool" else dtype))


def array(value):
    return (value.float() if value.dtype == mindspore.bfloat16 else value).asnumpy()


def gradients(function, tensors, incoming):
    chosen = [number for number, gradient in enumerate(incoming) if gradient is not None]

    def differentiable(*tensors):
        results = function(*tensors)
        return tuple(results[number] for number in chosen)

    compute = mindspore.ops.GradOperation(get_all=True, sens_param=True)(differentiable)
    return compute(*tensors, tuple(incoming[number] for number in chosen))
''',
)  # fmt: skip
_KERNELS = "torch.ops.aten"
_PYTORCH = _Spelling(
    "torch",
    {
        "Torch": "torch", "Functional": "torch.nn.functional", "Tensor": "torch.Tensor", "VF": "torch._VF",
        "Aten": _KERNELS,
    },
    '''\
import torch


def tensor(name, dtype):
    return torch.from_numpy(np.load(FOLDER / name)).to(getattr(torch, dtype))


def array(value):
    return (value.float() if value.dtype == torch.bfloat16 else value).detach().numpy()


def gradients(function, tensors, incoming):
    tensors = [each.requires_grad_() for each in tensors]
    pairs = [(result, seed) for result, seed in zip(function(*tensors), incoming) if seed is not None]
    results, seeds = zip(*pairs)
    return torch.autograd.grad(results, tensors, seeds, allow_unused=True)
''',
)  # fmt: skip
_SPELLINGS = {"mindspore": _MINDSPORE, "pytorch": _PYTORCH}

_SCRIPT = '''\
"""{name}: the call alone, beside a reference of higher precision. Needs {package} and numpy.

python {file}
"""

from pathlib import Path

import numpy as np
{helpers}
FOLDER = Path(__file__).parent


def flat(value):
    return [leaf for member in value for leaf in flat(member)] if isinstance(value, (list, tuple)) else [value]


def call(*tensors):
    return flat({call})


def show(what, value, reference):
    if value is None or reference is None:
        return
    ours, exact = array(value).astype(np.float64), np.load(FOLDER / reference).astype(np.float64)
    error = np.abs(ours - exact)
    worst = np.unravel_index(np.argmax(np.nan_to_num(error, nan=np.inf)), error.shape) if error.size else ()
    print(f"{{what}}: largest error {{error.max(initial=0):.6g}} at {{tuple(map(int, worst))}}: "
          f"{{ours[worst] if error.size else '-'}}, reference {{exact[worst] if error.size else '-'}}")


def arguments():
    return [{tensors}]


for number, (result, reference) in enumerate(zip(call(*arguments()), {results})):
    show(f"output {{number}}", result, reference)
{backward}'''

_BACKWARD = """\
incoming = [{incoming}]
for number, (gradient, reference) in enumerate(zip(gradients(call, arguments(), incoming), {gradients})):
    show(f"gradient {{number}}", gradient, reference)
"""


def no_script(name: str, prefix: str) -> str:
    """Say that there is no script of a call, and why."""
    return tr(
        "{name}: no script can be written for it: a script calls public functions by their names, and calls recorded "
        "as {prefix} are none",
        name=name,
        prefix=prefix,
    )


def write_script(call: ScriptedCall, file: str) -> str:
    """Return the text of a script, which is to be saved as ``file`` beside the files of tensors.

    Names come from a dump: what is no API that is recorded becomes no code.

    :raises UsageError: the function cannot be named in a script
    """
    spelling = _SPELLINGS.get(call.framework)
    path = spelling and spelling.prefixes.get(call.prefix)
    if spelling is None or path is None or not _is_recorded(path, call.api):
        raise UsageError(no_script(call.name, call.prefix))
    floats: list[TensorFile] = []
    words = [*_positional(call.arguments, spelling, floats), *_keywords(call.arguments, spelling, floats)]
    backward = ""
    if any(call.incoming):
        backward = _BACKWARD.format(
            incoming=", ".join("None" if each is None else _tensor(each) for each in call.incoming),
            gradients=list(call.gradients),
        )
    return _SCRIPT.format(
        name=call.name,
        package=spelling.package,
        file=file,
        helpers=spelling.helpers,
        call=f"{path}.{call.api}({', '.join(words)})",
        tensors=", ".join(map(_tensor, floats)),
        results=list(call.results),
        backward=backward,
    )


def _is_recorded(path: str, api: str) -> bool:
    if path == _KERNELS:  # by the names of the functions that call them
        name, dot, overload = api.partition(".")
        return _is_recorded("torch", name) and (not dot or overload.isidentifier()) and not overload.startswith("_")
    return api in recorded_apis().get(path, ())


def _positional(arguments: Arguments, spelling: _Spelling, floats: list[TensorFile]) -> Iterator[str]:
    for value in arguments.positional:
        yield _expression(value, spelling, floats)


def _keywords(arguments: Arguments, spelling: _Spelling, floats: list[TensorFile]) -> Iterator[str]:
    for key, value in arguments.keywords.items():
        if not key.isidentifier():
            raise UsageError(tr("{key} is no name of an argument", key=repr(key)))
        yield f"{key}={_expression(value, spelling, floats)}"


def _expression(value: Any, spelling: _Spelling, floats: list[TensorFile]) -> str:
    """An argument as Python source; floating-point tensors are the parameters of the scripted call."""
    if isinstance(value, TensorFile):
        if parse_dtype(value.dtype).kind != "float":
            return _tensor(value)
        floats.append(value)
        return f"tensors[{len(floats) - 1}]"
    if isinstance(value, DtypeArgument):
        return f"{spelling.package}.{'bool_' if value.name == 'bool' else value.name}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_expression(each, spelling, floats)}" for key, each in value.items()) + "}"
    if type(value) in (tuple, list):
        members = [_expression(each, spelling, floats) for each in value]
        return f"({', '.join(members)}{',' if len(members) == 1 else ''})"
    if (isinstance(value, float) and value != value) or value in (float("inf"), float("-inf")):
        return f"float({str(value)!r})"
    return repr(value)


def _tensor(file: TensorFile) -> str:
    return f"tensor({file.name!r}, {file.dtype!r})"
