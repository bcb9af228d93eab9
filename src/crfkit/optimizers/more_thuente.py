"""Moré and Thuente's line search, on plain numbers.

It looks along φ(t) = F(x + t·d) for a step t > 0 that meets the strong Wolfe conditions:

    φ(t) ≤ φ(0) + c₁ t φ'(0)    the value falls enough
    |φ'(t)| ≤ c₂ |φ'(0)|        the slope is flat enough

J. J. Moré and D. J. Thuente, Line search algorithms with guaranteed sufficient decrease, ACM TOMS 20 (1994).
The numbers of sections and cases are theirs.
"""

from math import copysign, inf, nan, sqrt
from typing import NamedTuple

C1 = 1e-4
C2 = 0.9
GROWTH = 4.0  # without a bracket, a step goes at most so many times the last stride beyond it
SHRINK = 0.66  # a bracket that does not shrink to this share within two steps is halved
NARROWEST = 1e-15  # relative width of a bracket that rounding has used up


def drowns(promise: float, change: float, noise: float) -> bool:
    """Whether neither a promised change of the value nor the one that was seen can be distinguished from noise."""
    return abs(promise) <= 10.0 * noise and abs(change) <= noise


class Sample(NamedTuple):
    """φ at one step."""

    t: float
    value: float
    slope: float


class MoreThuente:
    """Proposes steps in `t`; `accepts` judges one, `advance` or (where φ has no value) `retreat` goes on."""

    def __init__(
        self,
        value: float,
        slope: float,
        first_step: float,
        *,
        noise: float = 0.0,
        c1: float = C1,
        c2: float = C2,
    ) -> None:
        """φ(0), φ'(0) < 0, the first step to try, the absolute noise of values, and the two constants."""
        self.t = first_step
        self._c1, self._c2 = c1, c2
        self._zero = Sample(0.0, value, slope)
        self._noise = noise
        self._best = self._zero  # the end of the interval with the lowest value so far: t_l
        self._other = self._zero  # its other end: t_u
        self._bracketed = False
        self._auxiliary = (
            True  # still on ψ(t) = φ(t) − φ(0) − c₁ t φ'(0), whose minimum has a lower φ (section 2)
        )
        self._widths = (inf, inf)  # of the bracket, one and two steps ago
        self._forbidden = inf  # φ has no value from here on

    def accepts(self, trial: Sample) -> bool:
        """Whether a step meets the strong Wolfe conditions.

        Where both the fall that the slope promises and the change of the value drown in the noise, the
        condition on the slope decides alone.
        """
        if abs(trial.slope) > self._c2 * -self._zero.slope:
            return False
        return trial.value <= self._line(trial.t) or self.drowns(trial)

    def drowns(self, trial: Sample) -> bool:
        """Whether neither the fall that the slope promises nor the change of the value can be distinguished from noise."""
        promise, change = trial.t * self._zero.slope, trial.value - self._zero.value
        return drowns(promise, change, self._noise)

    def advance(self, trial: Sample) -> bool:
        """Chooses the next step after a trial that was not accepted; False when rounding leaves none."""
        enough = trial.value <= self._line(trial.t)
        if enough and trial.slope >= 0.0:
            self._auxiliary = False
        if self._auxiliary and not enough and trial.value <= self._best.value:
            best, other, seen = self._tilt(self._best), self._tilt(self._other), self._tilt(trial)
        else:
            best, other, seen = self._best, self._other, trial
        t, brackets = _proposal(best, other, seen, self._bracketed, self._limits(trial.t))
        self._shrink(best, seen, trial)
        self._bracketed |= brackets
        if self._bracketed:
            t = self._halve_if_slow(t)
        self.t = t
        return self._is_new(t, trial.t)

    def retreat(self) -> bool:
        """Chooses a much shorter step after one where φ has no value; False when rounding leaves none."""
        self._forbidden = self.t
        self.t = self._best.t + 0.1 * (self.t - self._best.t)
        return self._is_new(self.t, self._forbidden)

    def _line(self, t: float) -> float:
        """φ(0) + c₁ t φ'(0)."""
        return self._zero.value + self._c1 * t * self._zero.slope

    def _tilt(self, sample: Sample) -> Sample:
        """The sample as one of ψ."""
        tilt = self._c1 * self._zero.slope
        return Sample(sample.t, sample.value - tilt * sample.t, sample.slope - tilt)

    def _limits(self, t: float) -> tuple[float, float]:
        """Where the step after t may lie: in the bracket, or 0.1 to GROWTH times the last stride beyond t."""
        if self._bracketed:
            return min(self._best.t, self._other.t), max(self._best.t, self._other.t)
        stride = t - self._best.t
        return t + 0.1 * stride, min(t + GROWTH * stride, 0.5 * (t + self._forbidden))

    def _shrink(self, best: Sample, seen: Sample, trial: Sample) -> None:
        """Updates the ends of the interval (section 2) from self._best and trial, or these of ψ."""
        if seen.value > best.value:
            self._other = trial
            return
        if seen.slope * best.slope < 0.0:
            self._other = self._best
        self._best = trial

    def _halve_if_slow(self, t: float) -> float:
        """t, or the middle of the bracket when the last two steps have not shrunk it enough."""
        width = abs(self._other.t - self._best.t)
        slow = width >= SHRINK * self._widths[1]
        self._widths = (width, self._widths[0])
        return self._best.t + 0.5 * (self._other.t - self._best.t) if slow else t

    def _is_new(self, t: float, last: float) -> bool:
        if self._bracketed:
            low, high = min(self._best.t, self._other.t), max(self._best.t, self._other.t)
            return low < t < high and high - low > NARROWEST * high
        return 0.0 < t < inf and t != last


def _proposal(
    best: Sample, other: Sample, trial: Sample, bracketed: bool, limits: tuple[float, float]
) -> tuple[float, bool]:
    """The next step (section 4, trial value selection), and whether best and trial enclose a minimum."""
    cubic = _cubic_minimum(best, trial)
    if trial.value > best.value:  # case 1: the minimum was passed
        quadratic = _quadratic_minimum(best, trial)
        near = abs(cubic - best.t) < abs(quadratic - best.t)
        return (cubic if near else 0.5 * (cubic + quadratic)), True
    secant = _secant_minimum(best, trial)
    if trial.slope * best.slope < 0.0:  # case 2: lower, and the slope has turned
        return (cubic if abs(cubic - trial.t) >= abs(secant - trial.t) else secant), True
    if abs(trial.slope) <= abs(best.slope):  # case 3: lower, and flatter
        return _further(best, other, trial, bracketed, limits, cubic, secant), False
    if bracketed:  # case 4: lower, and steeper
        return _cubic_minimum(other, trial), False
    return (limits[1] if trial.t > best.t else limits[0]), False


def _further(
    best: Sample,
    other: Sample,
    trial: Sample,
    bracketed: bool,
    limits: tuple[float, float],
    cubic: float,
    secant: float,
) -> float:
    """Case 3: the minimum lies beyond the trial. In a bracket take the nearer proposal, else the further."""
    beyond = (cubic - trial.t) * (trial.t - best.t) > 0.0  # false too when the cubic has no minimum (nan)
    if not beyond:
        cubic = limits[1] if trial.t > best.t else limits[0]
    cubic_is_near = abs(cubic - trial.t) < abs(secant - trial.t)
    if not bracketed:
        return min(max(secant if cubic_is_near else cubic, limits[0]), limits[1])
    t = cubic if cubic_is_near else secant
    cap = trial.t + SHRINK * (other.t - trial.t)
    return min(cap, t) if trial.t > best.t else max(cap, t)


def _cubic_minimum(a: Sample, b: Sample) -> float:
    """Minimum of the cubic through the values and slopes of two samples; nan without one."""
    mean = 3.0 * (a.value - b.value) / (b.t - a.t) + a.slope + b.slope
    scale = max(abs(mean), abs(a.slope), abs(b.slope))
    square = (mean / scale) ** 2 - (a.slope / scale) * (b.slope / scale)
    if square < 0.0:
        return nan
    root = scale * sqrt(square) if b.t > a.t else -scale * sqrt(square)
    bottom = b.slope - a.slope + 2.0 * root
    return b.t - (b.t - a.t) * (b.slope + root - mean) / bottom if bottom else nan


def _quadratic_minimum(a: Sample, b: Sample) -> float:
    """Minimum of the parabola with the value and slope of a and the value of b, which lies above the line through a."""
    h = b.t - a.t
    return a.t + a.slope * h * h / (2.0 * (a.slope * h - (b.value - a.value)))


def _secant_minimum(a: Sample, b: Sample) -> float:
    """Where the slope is 0 when it changes evenly from a to b; infinitely far when it does not change."""
    change = b.slope - a.slope
    return b.t - b.slope * (b.t - a.t) / change if change else copysign(inf, b.t - a.t)
