"""Forms of saved models: each says what an entry of a JSON file may be, and both writes and reads it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from trimbench._checks import is_number, is_whole
from trimbench.networks.values import SUM_TOLERANCE, checked_names, names_text

# The sizes of the axes that the entries of a file have in common, by the names of the axes.
Sizes = dict[str, int]


class Form(Protocol):
    """What an entry of a file may be."""

    def written(self, value: Any) -> Any:
        """Return a value in the types of JSON; raise TypeError if a file cannot hold it."""

    def read(self, content: Any, where: str, sizes: Sizes) -> Any:
        """Return the value of an entry; raise ValueError, with its place, if it is none of this form."""


@dataclass(frozen=True)
class Entries:
    """Named entries, and what is made of them: the arguments of a dataclass, unless it is said otherwise.

    Attributes
    ----------
    forms : mapping from name to Form
        In the order in which they are read; an axis has the size that it has first.
    build : callable
        Is called with the entries as keywords; what it raises as a ValueError is said of the entries.
    parts : callable, optional
        Returns the entries of a value. Default: its attributes.
    """

    forms: Mapping[str, Form]
    build: Callable[..., Any]
    parts: Callable[[Any], Mapping[str, Any]] | None = None

    def written(self, value: Any) -> dict[str, Any]:
        """Return the entries of a value."""
        parts = {name: getattr(value, name) for name in self.forms} if self.parts is None else self.parts(value)
        return {name: form.written(parts[name]) for name, form in self.forms.items()}

    def read(self, content: Any, where: str, sizes: Sizes) -> Any:
        """Return what is made of the entries, which are exactly those of the forms."""
        if not isinstance(content, dict) or content.keys() != self.forms.keys():
            got = names_text(list(content)) if isinstance(content, dict) else type(content).__name__
            raise ValueError(f"{where or 'a model'} must have the entries {names_text(list(self.forms))}, got {got}")
        found = {name: form.read(content[name], _inside(where, name), sizes) for name, form in self.forms.items()}
        try:
            return self.build(**found)
        except np.linalg.LinAlgError as error:
            raise ValueError(f"{where or 'the model'} must have matrices that can be inverted: {error}") from error


def _inside(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


@dataclass(frozen=True)
class Either:
    """One of several forms, whose name is an entry of its own, ``"kind"``."""

    forms: Mapping[str, tuple[type, Entries]]

    def written(self, value: Any) -> dict[str, Any]:
        """Return the entries of a value with its kind."""
        for kind, (cls, form) in self.forms.items():
            if isinstance(value, cls):
                return {"kind": kind, **form.written(value)}
        raise TypeError(f"a file can hold one of {', '.join(self.forms)}, not a {type(value).__name__}")

    def read(self, content: Any, where: str, sizes: Sizes) -> Any:
        """Return the value of the kind that is named."""
        kind = content.get("kind") if isinstance(content, dict) else None
        if not isinstance(kind, str) or kind not in self.forms:
            raise ValueError(f"{where} must have a kind, one of {', '.join(self.forms)}, got {str(kind)[:80]!r}")
        rest = {name: entry for name, entry in content.items() if name != "kind"}
        return self.forms[kind][1].read(rest, where, sizes)


@dataclass(frozen=True)
class Numbers:
    """An array of finite numbers.

    Attributes
    ----------
    axes : str
        Names of the axes, between blanks; axes of one name have one size, ``*`` has any.
    least, most : float
    above : bool
        Whether `least` itself is too small.
    kind : type
        Of the numbers, which are whole if it is one of integers or bools.
    also : tuple of str
        Which of ``nan``, ``inf`` and ``-inf`` may stand, as text, in place of a number.
    """

    axes: str
    least: float = -math.inf
    most: float = math.inf
    above: bool = False
    kind: Any = np.float64
    also: tuple[str, ...] = ()

    def written(self, value: Any) -> Any:
        """Return a list, or the shape and the numbers in the order of the memory, on which digits of sums depend."""
        array = np.asarray(value)
        by_column = array.flags.f_contiguous and not array.flags.c_contiguous
        flat = array.ravel(order="F" if by_column else "C").tolist()
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            flat = [number if math.isfinite(number) else str(number) for number in flat]
        if array.ndim == 1:
            return flat
        return {"shape": list(array.shape), "order": "F" if by_column else "C", "numbers": flat}

    def read(self, content: Any, where: str, sizes: Sizes) -> NDArray[Any]:
        """Return the array, its numbers within bounds."""
        names = self.axes.split()
        flat, shape = content, None
        order: Any = "C"
        if len(names) != 1:
            if not isinstance(content, dict) or content.keys() != {"shape", "order", "numbers"}:
                raise ValueError(f"{where} must have shape, order and numbers, got a {type(content).__name__}")
            flat, shape, order = content["numbers"], content["shape"], content["order"]
        if not isinstance(flat, list):
            raise ValueError(f"{where} must be a list of numbers, got a {type(flat).__name__}")
        shape = [len(flat)] if shape is None else shape
        whole = isinstance(shape, list) and len(shape) == len(names) and all(is_whole(size, 0) for size in shape)
        if not whole or math.prod(shape) != len(flat) or order not in ("C", "F"):
            raise ValueError(
                f"{where} must have a shape with {len(names)} axes for its {len(flat)} numbers, in the order C or F, "
                f"got {str(shape)[:80]} and {str(order)[:20]!r}"
            )
        for name, size in zip(names, shape, strict=True):
            if name != "*" and sizes.setdefault(name, size) != size:
                raise ValueError(f"{where} must have {sizes[name]} {name}, as the entries before it, got {size}")
        return np.asarray(self._checked(flat, where).reshape(shape, order=order))

    def _checked(self, flat: list[Any], where: str) -> NDArray[Any]:
        kind = np.dtype(self.kind)
        allowed: set[type] = {bool} if kind.kind == "b" else {int} if kind.kind in "iu" else {int, float}
        strange = next((one for one in flat if type(one) not in allowed and one not in self.also), None)
        array = np.array([], dtype=kind)
        if strange is None:
            try:
                array = np.array(flat, dtype=kind)  # texts are those of `also`
            except OverflowError:
                strange = max(flat, key=abs)
        is_text = np.array([type(one) is str for one in flat], dtype=bool) if self.also else np.False_
        if strange is None and kind.kind != "b":
            with np.errstate(invalid="ignore"):
                inside = (array > self.least if self.above else array >= self.least) & (array <= self.most)
            wrong = ~((inside & np.isfinite(array)) | is_text)
            strange = array[wrong][0].item() if wrong.any() else None
        if strange is not None:
            raise ValueError(f"{where} must have {self._said()}, got {str(strange)[:80]!r}")
        return array

    def _said(self) -> str:
        kind = np.dtype(self.kind).kind
        said = "true and false" if kind == "b" else "whole numbers" if kind in "iu" else "finite numbers"
        if self.least > -math.inf:
            said += f" {'above' if self.above else 'of at least'} {self.least:g}"
        return said + (f" and at most {self.most:g}" if self.most < math.inf else "")


def check_sums(sums: Any, where: str) -> None:
    """Raise ValueError unless these sums of probabilities are 1."""
    sums = np.atleast_1d(sums)
    off = np.abs(sums - 1.0)
    if not (off <= SUM_TOLERANCE).all():
        raise ValueError(
            f"{where} must have probabilities that sum to 1, got a sum of {float(sums.flat[off.argmax()])!r}"
        )


@dataclass(frozen=True)
class Number:
    """One finite number, or a whole one."""

    least: float = -math.inf
    above: bool = False
    whole: bool = False
    also: tuple[str, ...] = ()

    def written(self, value: Any) -> Any:
        """Return the number."""
        plain = value.item() if isinstance(value, np.generic) else value
        return plain if math.isfinite(plain) else str(plain)

    def read(self, content: Any, where: str, sizes: Sizes) -> Any:
        """Return the number, which is within its bounds."""
        flat = Numbers("*", self.least, above=self.above, kind=np.int64 if self.whole else np.float64, also=self.also)
        return flat.read([content], where, sizes)[0].item()


@dataclass(frozen=True)
class Share:
    """A number as it is, or an exact fraction as a pair of whole numbers."""

    def written(self, value: Any) -> Any:
        """Return a number or a pair."""
        return [value.numerator, value.denominator] if isinstance(value, Fraction) else float(value)

    def read(self, content: Any, where: str, sizes: Sizes) -> Any:
        """Return a number in [0, 1]."""
        pair = content if isinstance(content, list) else None
        if pair is not None and len(pair) == 2 and is_whole(pair[0], 0) and is_whole(pair[1], 1):
            found: Any = Fraction(*pair)
        else:
            found = content if pair is None and is_number(content) else math.nan
        if not 0 <= found <= 1:
            raise ValueError(f"{where} must be a number from 0 to 1, or such a fraction, got {str(content)[:80]}")
        return found


@dataclass(frozen=True)
class Text:
    """A text, or one of a few."""

    allowed: tuple[str, ...] = ()

    def written(self, value: Any) -> Any:
        """Return the text."""
        return str(value)

    def read(self, content: Any, where: str, sizes: Sizes) -> str:
        """Return the text."""
        if not isinstance(content, str) or (self.allowed and content not in self.allowed):
            raise ValueError(f"{where} must be {' or '.join(self.allowed) or 'text'}, got {str(content)[:80]!r}")
        return content


class Flag:
    """True or false."""

    def written(self, value: Any) -> bool:
        """Return the truth value."""
        return bool(value)

    def read(self, content: Any, where: str, sizes: Sizes) -> bool:
        """Return the truth value."""
        if not isinstance(content, bool):
            raise ValueError(f"{where} must be true or false, got {str(content)[:80]!r}")
        return content


@dataclass(frozen=True)
class Optional:
    """Something of a form, or null."""

    form: Form

    def written(self, value: Any) -> Any:
        """Return what the form makes of it, or None."""
        return None if value is None else self.form.written(value)

    def read(self, content: Any, where: str, sizes: Sizes) -> Any:
        """Return what the form makes of it, or None."""
        return None if content is None else self.form.read(content, where, sizes)


@dataclass(frozen=True)
class Many:
    """A list of entries of one form, as a tuple; `axis` names its length."""

    form: Form
    axis: str = "*"
    least: int = 0

    def written(self, value: Any) -> list[Any]:
        """Return a list."""
        return [self.form.written(one) for one in value]

    def read(self, content: Any, where: str, sizes: Sizes) -> tuple[Any, ...]:
        """Return a tuple."""
        if not isinstance(content, list) or len(content) < self.least:
            raise ValueError(f"{where} must be a list of {self.least} entries or more, got {str(content)[:40]}")
        if self.axis != "*" and sizes.setdefault(self.axis, len(content)) != len(content):
            raise ValueError(f"{where} must have {sizes[self.axis]} {self.axis}, got {len(content)}")
        return tuple(self.form.read(one, f"{where}[{place}]", sizes) for place, one in enumerate(content))


@dataclass(frozen=True)
class Names:
    """Distinct names, as a tuple; `axis` names their number."""

    axis: str = "*"

    def written(self, value: Any) -> list[str]:
        """Return a list."""
        return list(map(str, value))

    def read(self, content: Any, where: str, sizes: Sizes) -> tuple[str, ...]:
        """Return a tuple."""
        found = Many(Text(), self.axis).read(content, where, sizes)
        return checked_names(found, where, of_values=True)


@dataclass(frozen=True)
class Scalars:
    """Texts, numbers and truth values as Python has them, which stand for themselves; a list."""

    axis: str = "*"

    def written(self, value: Any) -> list[Any]:
        """Return a list."""
        return [_scalar(one) for one in value]

    def read(self, content: Any, where: str, sizes: Sizes) -> list[Any]:
        """Return a list."""
        return list(Many(_OneScalar(), self.axis).read(content, where, sizes))


class _OneScalar:
    def written(self, value: Any) -> Any:
        return _scalar(value)

    def read(self, content: Any, where: str, sizes: Sizes) -> Any:
        if not _is_scalar(content):
            raise ValueError(f"{where} must be text, a finite number or a truth value, got {str(content)[:80]!r}")
        return content


def _is_scalar(value: Any) -> bool:
    if isinstance(value, int):
        return -(2**63) <= value < 2**64
    return isinstance(value, str) or (isinstance(value, float) and math.isfinite(value))


def _scalar(value: Any) -> Any:
    plain = value.item() if isinstance(value, np.generic) else value
    if _is_scalar(plain):
        return str(plain) if isinstance(plain, str) else plain
    raise TypeError(f"a file can hold values that are text, numbers or truth values, not {str(value)[:80]!r}")


@dataclass(frozen=True)
class Labels:
    """An array of class labels with its type; dates as ISO text, spans of time as numbers of their unit."""

    axis: str

    def written(self, value: Any) -> dict[str, Any]:
        """Return the type and the labels."""
        array = np.asarray(value)
        return {"type": array.dtype.str if array.dtype.kind != "T" else "T", "labels": labels_text(array)}

    def read(self, content: Any, where: str, sizes: Sizes) -> NDArray[Any]:
        """Return the array of distinct labels."""
        if not isinstance(content, dict) or content.keys() != {"type", "labels"}:
            raise ValueError(f"{where} must have a type and labels, got a {type(content).__name__}")
        labels = Scalars(self.axis).read(content["labels"], where, sizes)
        found = labels_of(content["type"], labels)
        if len({str(label) for label in found.tolist()}) != len(labels):
            raise ValueError(f"{where} must have distinct labels, got {names_text(labels)}")
        return found


def labels_text(classes: NDArray[Any]) -> list[Any]:
    """Return labels in the types of JSON."""
    if classes.dtype.kind == "M":
        found: list[Any] = np.datetime_as_string(classes).tolist()
        return found
    return [_scalar(label) for label in (classes.astype(np.int64) if classes.dtype.kind == "m" else classes).tolist()]


# A type can ask for more memory than the texts of the labels need; up to this many characters it may.
_LONGEST_LABEL = 1024


def labels_of(kind: Any, labels: list[Any]) -> NDArray[Any]:
    """Return labels in their type; ValueError if it is none of text, numbers, truth values or times."""
    try:
        if kind == "T":
            return np.array(labels, dtype=np.dtypes.StringDType())
        dtype = np.dtype(str(kind))
    except TypeError as error:
        raise ValueError(f"the type of labels must be one of numpy's, got {str(kind)[:40]!r}") from error
    longest = max((len(label) for label in labels if isinstance(label, str)), default=1)
    if dtype.kind not in "biufmMOU":
        raise ValueError(f"the type of labels must be text, numbers, truth values or times, got {str(kind)[:40]!r}")
    if dtype.kind == "U" and dtype.itemsize > 4 * max(longest, _LONGEST_LABEL):
        dtype = np.dtype(f"<U{longest}")
    return np.array(labels, dtype=dtype)


# Parameters of estimators, which may be nested.


@dataclass(frozen=True)
class Parameters:
    """The parameters of an estimator, from which it is made anew; those `left_out` are None in the file.

    A mapping becomes pairs (its keys may be positions), and what is not finite a text.
    """

    cls: Any
    left_out: tuple[str, ...] = ()

    def written(self, value: Any) -> dict[str, Any]:
        """Return the parameters of an estimator."""
        found = {}
        for name, parameter in value.get_params(deep=False).items():
            try:
                found[name] = plain(None if name in self.left_out else parameter)
            except TypeError as error:
                raise TypeError(f"{name} cannot be saved: {error}") from error
        return found

    def read(self, content: Any, where: str, sizes: Sizes) -> Any:
        """Return an estimator that is not fitted."""
        names = sorted(self.cls._get_param_names())
        if not isinstance(content, dict) or sorted(content) != names:
            raise ValueError(f"{where} must be those of {self.cls.__name__}, {names_text(names)}")
        return self.cls(**{name: unplain(value) for name, value in content.items()})


def plain(value: Any) -> Any:
    """Return a parameter in the types of JSON; TypeError if a file cannot hold it."""
    if hasattr(value, "to_dict"):
        value = value.to_dict()
    if isinstance(value, Mapping):
        return {"pairs": [[plain(key), plain(entry)] for key, entry in value.items()]}
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": str(float(value))}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise TypeError(f"a file can hold text, numbers, lists and mappings, not a {type(value).__name__}")


def unplain(content: Any) -> Any:
    """Return the parameter that `plain` has written."""
    if isinstance(content, Mapping):
        if "number" in content:
            return float(content["number"])
        return {unplain(key): unplain(entry) for key, entry in content["pairs"]}
    return [unplain(entry) for entry in content] if isinstance(content, list) else content
