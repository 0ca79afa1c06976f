"""Functions of single elements that are steep near zero: powers, roots, logarithms, and quotients.

An error that is small beside a whole tensor may be large beside its smallest element, and of a reciprocal that element
makes the largest result: the reciprocal root of the variances of a normalisation, where one token is nearly constant.
Of an error δ of the argument x each element of y = f(x) gets at most the steepest slope times its part of δ, so that
‖δy‖ / ‖y‖ is at most max |f'| · (‖x‖ / ‖y‖) times ‖δ‖ / ‖x‖. The steepest slope follows from Max and Min.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from msprobe_ms.comparison.layer_kinds import plain_name
from msprobe_ms.comparison.statistics import element_count, magnitude
from msprobe_ms.dump.model import Item
from msprobe_ms.dump.names import EntryName

#: The steepest slope by the smallest argument x, the smallest magnitude y and the largest magnitude z of the result.
_SLOPES: Mapping[str, Callable[[float, float, float], float]] = MappingProxyType(
    {
        "sqrt": lambda x, y, z: 1 / (2 * y),
        "rsqrt": lambda x, y, z: z**3 / 2,
        "reciprocal": lambda x, y, z: z**2,
        "inv": lambda x, y, z: z**2,
        "log": lambda x, y, z: 1 / x,
        "log2": lambda x, y, z: 1 / (x * math.log(2)),
        "log10": lambda x, y, z: 1 / (x * math.log(10)),
        "log1p": lambda x, y, z: 1 / (1 + x),
    }
)


def condition_of_steep_function(
    parsed: EntryName, inputs: Sequence[Item], exponents: Sequence[float], given: Item
) -> float | None:
    """Return how much larger the relative error of a result may be than that of what it is computed from, 1 at least.

    ``inputs`` are its tensors of floats, ``exponents`` its plain numbers. None where that does not follow from figures.
    """
    name = plain_name(parsed)
    try:
        if name in _SLOPES:
            known = _by_slope(_SLOPES[name](float(inputs[0].minimum), *_magnitudes(given)), inputs[0], given)  # type: ignore[arg-type]
        elif name == "pow":
            known = _of_power(exponents[0], inputs[0], given)
        else:
            known = _of_quotient(inputs[0], inputs[1], given)
    except (ArithmeticError, IndexError, TypeError, ValueError):  # no slope at zero, no number, no second tensor
        return None
    return max(1.0, known) if math.isfinite(known) else None


def _by_slope(slope: float, taken: Item, given: Item) -> float:
    return abs(slope) * magnitude(taken.norm) / magnitude(given.norm)


def _of_power(exponent: float, base: Item, given: Item) -> float:
    """|p| · |x|^(p - 1) is largest at the largest x, or at the smallest where p is less than 1."""
    least, largest = _magnitudes(base)
    return _by_slope(exponent * (largest if exponent >= 1 else least) ** (exponent - 1), base, given)


def _of_quotient(dividend: Item, divisor: Item, given: Item) -> float:
    """y = a / b has the slopes 1 / b and y / b; an element of b may divide many of a."""
    least, _ = _magnitudes(divisor)
    _, largest = _magnitudes(given)
    shared = math.sqrt(element_count(given) / element_count(divisor))
    return max(_by_slope(1 / least, dividend, given), _by_slope(shared * largest / least, divisor, given))


def _magnitudes(item: Item) -> tuple[float, float]:
    """The smallest and the largest magnitude of elements that all have one sign; of others the smallest may be 0."""
    maximum, minimum = float(item.maximum), float(item.minimum)  # type: ignore[arg-type]
    least = min(abs(maximum), abs(minimum)) if maximum * minimum > 0 else 0.0
    return least, max(abs(maximum), abs(minimum))
