"""Read the settings of a training from its Python script, which is parsed and never run.

Only what is written down as a value counts: constants of the module, fields of configuration classes, defaults of
command line options, and arguments of calls that set up a training (optimizer, data, seed, loss scale, execution mode).
What a script hands to msprobe alone is none of them.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msprobe_ms.environment.settings import Given, Setting
from msprobe_ms.environment.told_to_msprobe import told_to_msprobe
from msprobe_ms.support.translation import tr


class _Role(NamedTuple):
    """What calls of some names set up. ``names`` are those of arguments without a keyword, from place ``first`` on.

    ``plain``: the argument that is a setting of its own, which is told without the prefix.
    """

    prefix: str
    callee: re.Pattern[str]
    names: tuple[str, ...] = ()
    first: int = 0
    plain: str = ""


#: The last part of what is called → what its arguments set.
_ROLES = (
    _Role("seed_all.", re.compile(r"seed_all"), ("seed", "mode"), plain="seed"),
    _Role("", re.compile(r"set_seed|manual_seed|seed_everything|manual_seed_all|seed"), ("seed",)),
    _Role("context.", re.compile(r"set_context")),
    _Role("parallel.", re.compile(r"set_auto_parallel_context")),
    _Role("", re.compile(r"set_deterministic|use_deterministic_algorithms"), ("deterministic",)),
    _Role("data.", re.compile(r"batch"), ("batch_size",)),
    _Role("data.", re.compile(r"DataLoader|\w*Sampler|\w+Dataset|shuffle|GeneratorDataset")),
    _Role("loss_scale.", re.compile(r"\w*LossScale\w*|GradScaler")),
    _Role("clip.", re.compile(r"clip_grad_\w+|clip_by_\w+")),
    _Role("schedule.", re.compile(r"\w+LR|\w+(?:Decay|Schedule|Scheduler|Warmup)\w*LR|\w+_lr|get_\w*schedule\w*")),
    _Role(
        "optimizer.",
        re.compile(r"(?:Fused|Mint)?(?:Ada|SGD|Momentum|Lamb|LAMB|Lion|LARS|RMSProp|RMSprop|Rprop|ASGD|FTRL)\w*|\w+Optimizer"),
        ("learning_rate",), 1,
    ),
    _Role("", re.compile(r"\w+(?:Config|Args|Arguments)")),
)  # fmt: skip
_CONFIGURATION = re.compile(r"\w*(Config|Args|Arguments|Settings|Hyperparameters)", re.IGNORECASE)
#: What is no value.
_NONE = object()


def settings_of_python(text: str) -> Iterator[Setting]:
    """Yield each setting in the text of a script. Raises ValueError where it is no Python."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise ValueError(
            tr("line {line}: it is not valid Python: {error}", line=error.lineno, error=error.msg)
        ) from None
    statements = list(_outer(tree.body))
    constants = dict(_constants(statements, _assigned(tree)))
    of_msprobe = told_to_msprobe(tree, lambda function: _role(function) is not None)
    yield from (Setting(*each) for each in constants.items() if each[0].partition(".")[0] not in of_msprobe)
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and _is_configuration(node):
            yield from (Setting(name, value, Given.DEFAULT) for name, value in _constants(node.body, Counter()))
    met: Counter[str] = Counter()
    for call in ast.walk(tree):
        if isinstance(call, ast.Call):
            yield from _of_call(call, constants, met, of_msprobe)


def _outer(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of the module, those under ``if`` (``__name__ == "__main__"``), ``with`` and ``try`` included."""
    for statement in body:
        yield statement
        if isinstance(statement, (ast.If, ast.With, ast.Try)):
            yield from _outer(statement.body)


def _assigned(tree: ast.Module) -> Counter[str]:
    """How often each name is bound outside of functions and classes: what is bound twice is no constant."""
    found: Counter[str] = Counter()
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found[node.id] += 1
        waiting += ast.iter_child_nodes(node)
    return found


def _constants(statements: Sequence[ast.stmt], bound: Mapping[str, int]) -> Iterator[tuple[str, Any]]:
    for statement in statements:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target, value = statement.targets[0], statement.value
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            target, value = statement.target, statement.value
        else:
            continue
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            pairs = list(zip(target.elts, value.elts, strict=True))
        for name, each in pairs:
            if isinstance(name, ast.Name) and bound.get(name.id, 0) <= 1 and not name.id.startswith("_"):
                yield from _flat(name.id, each, {})


def _flat(name: str, node: ast.expr, constants: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """A value under its name; the entries of a dictionary each under a name of its own."""
    if isinstance(node, ast.Dict):
        if _renames(node):
            return
        for key, each in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, (str, int)):
                yield from _flat(f"{name}.{key.value}", each, constants)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        for keyword in node.keywords:
            if keyword.arg:
                yield from _flat(f"{name}.{keyword.arg}", keyword.value, constants)
    elif (value := _value(node, constants)) is not _NONE:
        yield name, value


def _renames(node: ast.Dict) -> bool:
    """Whether it says what parameters are called elsewhere: texts by texts, with dots or patterns in them."""
    texts = [each.value for each in (*node.keys, *node.values) if isinstance(each, ast.Constant)]
    all_texts = len(texts) == 2 * len(node.keys) and all(isinstance(each, str) for each in texts)
    return all_texts and any("." in str(each) or "\\" in str(each) for each in texts[: len(node.keys)])


def _value(node: ast.expr, constants: Mapping[str, Any]) -> Any:
    """A number, a text, a truth value, or the text of a tuple, a list or a product of these; else ``_NONE``."""
    if isinstance(node, ast.Name):
        return constants.get(node.id, _NONE)
    if isinstance(node, ast.Constant):
        simple = isinstance(node.value, (bool, int, float, str)) or node.value is None
        return (node.value if node.value is not None else "None") if simple else _NONE
    if isinstance(node, ast.Attribute) and node.attr in ("GRAPH_MODE", "PYNATIVE_MODE"):
        return node.attr
    if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
        return _evaluated(node)
    made_of = (ast.Constant, ast.UnaryOp, ast.BinOp, ast.Tuple, ast.List, ast.operator, ast.unaryop, ast.expr_context)
    if isinstance(node, (ast.BinOp, ast.Tuple, ast.List)) and all(isinstance(each, made_of) for each in ast.walk(node)):
        return ast.unparse(node)
    return _NONE


def _evaluated(node: ast.UnaryOp) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:  # ``not 1``
        return ast.unparse(node)


def _is_configuration(node: ast.ClassDef) -> bool:
    decorators = {_last_name(each.func if isinstance(each, ast.Call) else each) for each in node.decorator_list}
    return "dataclass" in decorators or _CONFIGURATION.fullmatch(node.name) is not None


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _role(function: str) -> _Role | None:
    """What calls of a function of this name set up."""
    return next((each for each in _ROLES if each.callee.fullmatch(function)), None)


def _of_call(
    call: ast.Call, constants: Mapping[str, Any], met: Counter[str], of_msprobe: Collection[str]
) -> Iterator[Setting]:
    callee = _last_name(call.func)
    if callee == "add_argument":
        yield from _of_option(call, constants, of_msprobe)
        return
    role = _role(callee)
    if role is None:
        return
    positional = zip(role.names, call.args[role.first :], strict=False)
    given = [*positional, *((keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg)]
    found = [pair for name, node in given for pair in _flat(name, node, constants)]
    if found and role.prefix == "optimizer.":
        met[role.prefix] += 1
    number = met[role.prefix] if met[role.prefix] > 1 else ""
    for name, value in found:
        told = f"{role.prefix[:-1]}{number}.{name}" if role.prefix and name != role.plain else name
        yield Setting(told, value)


def _of_option(call: ast.Call, constants: Mapping[str, Any], of_msprobe: Collection[str]) -> Iterator[Setting]:
    """The default of an option of the command line, under its name; of one for msprobe alone that it is this."""
    flags = [each.value for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    name = next((flag.lstrip("-") for flag in flags if flag.startswith("--")), flags[0].lstrip("-") if flags else "")
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    kept_as = keywords.get("dest")
    attribute = str(kept_as.value) if isinstance(kept_as, ast.Constant) else name.replace("-", "_")
    if name and f".{attribute}" in of_msprobe:
        yield Setting(name, None, Given.FOR_MSPROBE)
    elif name and "default" in keywords:
        yield from (Setting(*pair, Given.DEFAULT) for pair in _flat(name, keywords["default"], constants))
