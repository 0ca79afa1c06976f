"""How far two results of one call are apart, and arrays a few units in the last place away from others.

The functions take arrays of NumPy, PyTorch or MindSpore alike: what they use has the same name in all three.
"""

from __future__ import annotations

from typing import Any, NamedTuple

#: dtype → bits, and the bits of its smallest normal number and of half its largest, as an integer.
_LAYOUT = {
    "float16": (16, 0x0400, 0x77FF),
    "bfloat16": (16, 0x0080, 0x7EFF),
    "float32": (32, 0x00800000, 0x7EFFFFFF),
    "float64": (64, 0x0010000000000000, 0x7FDFFFFFFFFFFFFF),
}
#: Bits → two odd factors and a shift that mix them: of Marsaglia's kind of multiply and exclusive-or.
_MIXING = {
    16: (0x6487, 7, 0x5BD1),
    32: (0x7FEB352D, 15, 0x2C1B3C6D),
    64: (0x1F51AFD7ED558CCD, 33, 0x44CEB9FE1A85EC53),
}


def bits_of(dtype: str) -> int:
    """Return the bits of a number of this dtype.

    >>> bits_of("bfloat16")
    16
    """
    return _LAYOUT[dtype][0]


def nearby(bits: Any, dtype: str, seed: int, ulps: int) -> Any:
    """Move floating-point numbers by ``ulps`` units in the last place, up or down.

    ``bits`` are the numbers seen as signed integers. Which way one goes depends on its value and the seed alone: no
    generator is drawn from, equal numbers stay equal. Zeros, subnormal numbers, those near the largest, infinities and
    NaN stay as they are.
    """
    width, _, _ = _LAYOUT[dtype]
    factor, shift, second = _MIXING[width]
    mixed = (bits ^ (seed & ((1 << (width - 1)) - 1))) * factor
    mixed = (mixed ^ (mixed >> shift)) * second
    sign = (mixed >> (width - 1)) | 1
    return bits + sign * _is_moved(bits, dtype) * ulps


def last_bit_flipped(bits: Any, dtype: str) -> Any:
    """Flip the last bit of the mantissa of the same numbers as ``nearby``."""
    one = bits * 0 + 1
    return bits ^ (one * _is_moved(bits, dtype))


def _is_moved(bits: Any, dtype: str) -> Any:
    width, least, most = _LAYOUT[dtype]
    magnitude = bits & ((1 << (width - 1)) - 1)
    return (magnitude > least) & (magnitude < most)


#: An element that changed by so many times the noise of the largest element changed of its own.
_TIMES_NOISE = 4


class Change(NamedTuple):
    """What became of a result.

    ``elements``   how many it has
    ``largest``    the largest difference of two finite elements
    ``scale``      the largest finite magnitude of the original
    ``changed``    elements that are off by more than their own share of the limit
    ``nans``       places where one of the two is NaN and the other is not
    ``infinities`` places where one of the two is infinite, and the other finite and not near the largest number
    ``has_nan``, ``has_infinity``  whether the original has any
    ``before``, ``after``  the elements furthest apart
    """

    elements: int
    largest: float = 0.0
    scale: float = 0.0
    changed: int = 0
    nans: int = 0
    infinities: int = 0
    has_nan: bool = False
    has_infinity: bool = False
    before: float = 0.0
    after: float = 0.0

    @property
    def relative(self) -> float:
        """The largest difference beside the largest magnitude; infinite where all was zero."""
        if not self.largest:
            return 0.0
        return self.largest / self.scale if self.scale else float("inf")


def measure(
    xp: Any, original: Any, other: Any, limit: float, smallest: float, largest: float, noise: float = 0.0
) -> Change:
    """Compare two arrays of one shape and of a dtype that is wide enough to subtract in.

    ``xp`` is the module that has ``abs``, ``isfinite``, ``isnan`` and ``where``. ``limit`` is relative; differences up
    to ``smallest`` are none; ``largest`` is the largest number of the results' own dtype. ``noise`` is the relative
    change of what they were made of.
    """
    elements = 1
    for size in original.shape:
        elements *= int(size)
    if not elements:
        return Change(0)
    original, other = original.reshape(-1), other.reshape(-1)
    sizes, gaps = xp.abs(original), xp.abs(other - original)
    widest = float(gaps.max())
    found = Change(elements)
    if not widest < float("inf"):
        found = _special(xp, original, other, largest, found)
        finite = xp.isfinite(original) & xp.isfinite(other)
        sizes, gaps = xp.where(finite, sizes, 0.0), xp.where(finite, gaps, 0.0)
        widest = float(gaps.max())
    if widest <= smallest:
        return found._replace(scale=float(sizes.max()))
    scale = float(sizes.max())
    # What is no larger than the noise of the largest element is what is left of larger numbers, or was a mask.
    own = (gaps > sizes * limit + smallest) & (gaps > _TIMES_NOISE * noise * scale)
    changed = int((own & ((sizes > 0) | (gaps > limit * scale))).sum())
    place = int(gaps.argmax())
    found = found._replace(largest=widest, scale=scale, changed=changed)
    return found._replace(before=float(original[place]), after=float(other[place]))


def _special(xp: Any, original: Any, other: Any, largest: float, found: Change) -> Change:
    nan, other_nan = xp.isnan(original), xp.isnan(other)
    endless, other_endless = _is_infinite(xp, original), _is_infinite(xp, other)
    # One that is near the largest number may pass over to infinity: a mask that was added to, as a rule.
    sizes, other_sizes = xp.abs(original), xp.abs(other)
    near = (sizes > largest / 2) & (other_sizes > largest / 2) & ((sizes <= largest) | (other_sizes <= largest))
    opposite = endless & other_endless & (original != other)
    passed = ((endless != other_endless) & ~near & ~nan & ~other_nan) | opposite
    return found._replace(
        nans=int((nan != other_nan).sum()),
        infinities=int(passed.sum()),
        has_nan=bool(nan.any()),
        has_infinity=bool(endless.any()),
    )


def _is_infinite(xp: Any, array: Any) -> Any:
    return ~(xp.isfinite(array) | xp.isnan(array))
