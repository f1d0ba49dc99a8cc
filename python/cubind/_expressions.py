"""Python's conditions as expressions of a kernel spec.

A condition is called with symbols that write down what is done to them. Where it asks one for its truth
(`and`, `or`, `not`, `if`, `in`), it is called once for each answer, and both results are joined by ?:.
"""

from __future__ import annotations

import fractions
import functools
import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .errors import CubindError, InvalidArgumentError

# Names and their values: of one configuration, or symbols of all.
Values = Mapping[str, Any]
Condition = Callable[[Values], Any]

_MOST_PATHS = 256
_SIMPLE = re.compile(r"\w+|\(-\d+\)")


def condition(given: Any, names: Sequence[str], where: str) -> Condition:
    """A text, or a function of some of the names or of a dict, as a function of all values. A number is
    itself. Raises InvalidArgumentError at `where`."""
    if callable(given):
        return _called(given, names)
    if not isinstance(given, str):
        return lambda _: given
    text = re.sub(r"!(?!=)", " not ", given)
    text = text.replace("&&", " and ").replace("||", " or ")
    try:
        code = compile(text.strip(), where, "eval")
    except (SyntaxError, ValueError, RecursionError) as error:
        cause = getattr(error, "msg", error)
        raise InvalidArgumentError(f'"{given}" is no expression: {cause}', where) from None
    return lambda values: eval(code, {"__builtins__": {}, **_FUNCTIONS}, dict(values))


def expression(
    given: Condition, values: Mapping[str, Sequence[Any]], where: str, is_size: bool = False, text: str = ""
) -> str:
    """What the condition computes, as an expression of a spec. values: all that a name may have. is_size: of
    a launch, where a fraction is no truth. text: the condition as its caller wrote it, for the message.
    Raises InvalidArgumentError at `where` where the condition raises, or does what integers cannot."""
    paths = 0

    def explore(decided: tuple[bool, ...]) -> str:
        nonlocal paths
        paths += 1
        if paths > _MOST_PATHS:
            raise InvalidArgumentError(f"it has more than {_MOST_PATHS} cases", where)
        path = _Path(decided, values)
        found = _final(given({name: path.symbol(name) for name in values}), is_size)
        for index in reversed(range(len(decided), len(path.asked))):
            otherwise = explore((*path.decided[:index], False))
            found = _chosen(path.asked[index], found, otherwise)
        return found

    try:
        return run(explore, where, ())
    except InvalidArgumentError as error:
        if not text or error.field != where:
            raise
        raise InvalidArgumentError(f'{error.cause}, in "{text}"', where) from error.__cause__


def run(call: Callable[..., Any], where: str, *arguments: Any) -> Any:
    """Calls what a caller has given. Raises InvalidArgumentError at `where` instead of its exceptions."""
    try:
        return call(*arguments)
    except CubindError:
        raise
    except Exception as error:
        raise InvalidArgumentError(f"raises {type(error).__name__}: {error}", where) from error


def _called(function: Callable[..., Any], names: Sequence[str]) -> Condition:
    """Functions of names get these; one of anything else gets the dict."""
    try:
        wanted = [*inspect.signature(function).parameters]
    except (TypeError, ValueError):
        wanted = []
    if wanted and all(name in names for name in wanted):
        return lambda values: function(**{name: values[name] for name in wanted})
    return function


def _final(result: Any, is_size: bool) -> str:
    is_symbol = isinstance(result, Symbol)
    if result is None or isinstance(result, str):
        raise TypeError(f"it returns {result!r}, a condition was expected")
    is_whole = result.bottom == "1" if is_symbol else result == int(result)
    if is_size and not is_whole:
        what = f"({result.top}) / ({result.bottom})" if is_symbol else result
        raise TypeError(f"{what} may be no integer: // cuts and cdiv() rounds up")
    if is_symbol:
        return result.top  # type: ignore[no-any-return]  # of a fraction, which is 0 if this is
    return str(int(result)) if is_whole else "1"


def _chosen(asked: str, then: str, otherwise: str) -> str:
    """asked ? then : otherwise, where it may be said shorter."""
    then, otherwise = ("1" if then == asked else then), ("0" if otherwise == asked else otherwise)
    if then == otherwise:
        return then
    if (then, otherwise) == ("1", "0"):
        return asked
    if (then, otherwise) == ("0", "1"):
        return f"!{_wrapped(asked)}"
    if otherwise == "0":
        return f"{_wrapped(asked)} && {_wrapped(then)}"
    if then == "1":
        return f"{_wrapped(asked)} || {_wrapped(otherwise)}"
    return f"{_wrapped(asked)} ? {_wrapped(then)} : {_wrapped(otherwise)}"


def _wrapped(text: str) -> str:
    return text if _SIMPLE.fullmatch(text) else f"({text})"


class _Path:
    """One call of a condition. decided: the answers to the first questions for a truth; later ones are
    answered by True."""

    def __init__(self, decided: Sequence[bool], values: Mapping[str, Sequence[Any]]) -> None:
        self.decided = list(decided)
        self.asked: list[str] = []
        self._values = values

    def symbol(self, name: str) -> Symbol:
        """It, or where its values are no integers, one that can only be compared with these."""
        values = self._values[name]
        if all(isinstance(value, int) for value in values):
            return Symbol(self, name)
        return _Choice(self, name, values)

    def truth(self, text: str) -> bool:
        if text in self.asked:
            return self.decided[self.asked.index(text)]
        self.asked.append(text)
        if len(self.asked) > len(self.decided):
            self.decided.append(True)
        return self.decided[len(self.asked) - 1]

    def may_be_negative(self, text: str) -> bool:
        """Whether Python and C may divide it differently."""
        named = (self._values.get(name, ()) for name in re.findall(r"\w+", text))
        return "-" in text or any(isinstance(value, int) and value < 0 for each in named for value in each)


class Symbol:
    """A number that is not known yet: top / bottom, both expressions of integers, bottom above 0."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, path: _Path, top: str, bottom: str = "1") -> None:
        self.path = path
        self.top = top
        self.bottom = bottom

    def _of(self, other: Any) -> Symbol:
        if isinstance(other, Symbol):
            if isinstance(other, _Choice):
                raise TypeError(f"the values of {other.top} are no integers: compare them with == or in")
            return other
        if isinstance(other, (bool, int)) or hasattr(other, "__index__"):
            return Symbol(self.path, _number(int(other)))
        exact = fractions.Fraction(repr(float(other)))
        return Symbol(self.path, _number(exact.numerator), str(exact.denominator))

    def _made(self, top: str, bottom: str = "1") -> Symbol:
        return Symbol(self.path, top, bottom)

    def _crossed(self, other: Any) -> tuple[str, str]:
        """Both over one bottom."""
        other = self._of(other)
        if self.bottom == other.bottom:
            return self.top, other.top
        return _times(self.top, other.bottom), _times(other.top, self.bottom)

    def _joined(self, other: Any, operator: str, swapped: bool = False) -> Symbol:
        left, right = (self._of(other), self) if swapped else (self, self._of(other))
        tops = left._crossed(right)
        bottom = left.bottom if left.bottom == right.bottom else _times(left.bottom, right.bottom)
        return self._made(f"{_wrapped(tops[0])} {operator} {_wrapped(tops[1])}", bottom)

    def _compared(self, other: Any, operator: str) -> Symbol:
        left, right = self._crossed(other)
        return self._made(f"{_wrapped(left)} {operator} {_wrapped(right)}")

    def _over(self, other: Any) -> Symbol:
        """self / other."""
        other = self._of(other)
        if self.path.may_be_negative(other.top) or other.top == "0":
            raise TypeError(f"{other.top} may be 0 or negative: nothing is divided by it")
        return self._made(_times(self.top, other.bottom), _times(self.bottom, other.top))

    def __floor__(self) -> Symbol:
        if self.bottom == "1":
            return self
        top, bottom = _wrapped(self.top), _wrapped(self.bottom)
        if self.path.may_be_negative(self.top):  # C cuts towards 0
            return self._made(f"({top} - ({top} % {bottom} + {bottom}) % {bottom}) / {bottom}")
        return self._made(f"{top} / {bottom}")

    def __ceil__(self) -> Symbol:
        if self.path.may_be_negative(self.top):
            return -math.floor(-self)
        return self if self.bottom == "1" else self._made(f"cdiv({self.top}, {self.bottom})")

    def __bool__(self) -> bool:
        return self.path.truth(self.top)

    def __int__(self) -> int:
        raise TypeError(f"{self.top} is not known yet: int(), float() and range() cannot take it")

    __index__ = __float__ = __int__

    def __neg__(self) -> Symbol:
        return self._made(f"-{_wrapped(self.top)}", self.bottom)

    def __abs__(self) -> Symbol:
        return self._made(f"abs({self.top})", self.bottom)

    def __mul__(self, other: Any) -> Symbol:
        other = self._of(other)
        return self._made(_times(self.top, other.top), _times(self.bottom, other.bottom))

    def __mod__(self, other: Any) -> Symbol:
        other = self._of(other)
        if self.bottom == other.bottom == "1" and not self.path.may_be_negative(f"{self.top} {other.top}"):
            return self._made(f"{_wrapped(self.top)} % {_wrapped(other.top)}")
        return self - math.floor(self._over(other)) * other

    __rmul__ = __mul__
    __add__ = functools.partialmethod(_joined, operator="+")
    __radd__ = functools.partialmethod(_joined, operator="+", swapped=True)
    __sub__ = functools.partialmethod(_joined, operator="-")
    __rsub__ = functools.partialmethod(_joined, operator="-", swapped=True)
    __lt__ = functools.partialmethod(_compared, operator="<")
    __le__ = functools.partialmethod(_compared, operator="<=")
    __gt__ = functools.partialmethod(_compared, operator=">")
    __ge__ = functools.partialmethod(_compared, operator=">=")
    __eq__ = functools.partialmethod(_compared, operator="==")  # type: ignore[assignment]
    __ne__ = functools.partialmethod(_compared, operator="!=")  # type: ignore[assignment]
    __truediv__ = _over

    def __rtruediv__(self, other: Any) -> Symbol:
        return self._of(other)._over(self)

    def __floordiv__(self, other: Any) -> Symbol:
        return math.floor(self._over(other))  # type: ignore[return-value]

    def __rfloordiv__(self, other: Any) -> Symbol:
        return self._of(other) // self

    def __rmod__(self, other: Any) -> Symbol:
        return self._of(other) % self


class _Choice(Symbol):
    """Stands for the number of one of the values."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, path: _Path, name: str, values: Sequence[Any]) -> None:
        super().__init__(path, name)
        self._values = list(values)

    def _of(self, other: Any) -> Symbol:
        raise TypeError(f"the values of {self.top} are no integers: compare them with == or in")

    def __eq__(self, other: Any) -> Any:
        return self._made(f"{self.top} == {self._values.index(other)}") if other in self._values else False

    def __ne__(self, other: Any) -> Any:
        equal = self == other
        return self._made(f"!({equal.top})") if isinstance(equal, Symbol) else True


def _number(value: int) -> str:
    return str(value) if value >= 0 else f"({value})"


def _times(left: str, right: str) -> str:
    if "1" in (left, right):
        return right if left == "1" else left
    return f"{_wrapped(left)} * {_wrapped(right)}"


def cdiv(top: Any, bottom: Any) -> Any:
    """top / bottom, rounded up."""
    return math.ceil(fractions.Fraction(top) / bottom if isinstance(top, int) else top / bottom)


# The words of texts.
_FUNCTIONS = {
    "min": min,
    "max": max,
    "abs": abs,
    "ceil": math.ceil,
    "floor": math.floor,
    "int": math.floor,
    "cdiv": cdiv,
    "True": True,
    "False": False,
    "true": True,
    "false": False,
}
