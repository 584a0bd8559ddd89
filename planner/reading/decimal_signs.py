"""Which sign of a column's numbers is the decimal one: a dot or a comma, by all of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation

from planner.reading.source import Source, refused

_NAMES = {".": "dot", ",": "comma"}
_FORMS = {
    sign: re.compile(
        rf"[-+]?(?:[1-9][0-9]{{0,2}}(?:[{group}][0-9]{{3}})+(?:[{sign}][0-9]*)?"
        rf"|(?:[0-9]+[{sign}]?[0-9]*|[{sign}][0-9]+)(?:[eE][-+]?[0-9]+)?)"
    )
    for sign, group in (".,", ",.")
}
_LONGEST = 60
_GROUP = 3  # digits between two signs of thousands


def number_in(text: str, sign: str = ".") -> Decimal | None:
    """A number as it is written with a decimal sign, the other between thousands; exactly, None for anything else."""
    if not (len(text) <= _LONGEST and _FORMS[sign].fullmatch(text)):
        return None
    try:
        return Decimal(text.replace(",", "") if sign == "." else text.replace(".", "").replace(",", "."))
    except InvalidOperation:
        return None


class DecimalSign:
    """What the numbers of a column say: 1,234.56 and 1.5 have a decimal dot, 1.234 alone may be either."""

    def __init__(self) -> None:
        self.shown: dict[str, tuple[str, int]] = {}  # sign -> the first number that has it as its decimal one, line
        self.either = ""  # the first number that says nothing

    def see(self, text: str, line: int) -> None:
        """One number of the column, at its line."""
        if not ("." in text or "," in text) or len(text) > _LONGEST:
            return
        fits = [sign for sign, form in _FORMS.items() if form.fullmatch(text)]
        if len(fits) == 1:
            self.shown.setdefault(fits[0], (text, line))
        elif fits:
            self.either = self.either or text

    def of(self, source: Source, column: str) -> str:
        """The sign that the numbers show, "" for none; `InputError` where they show both."""
        if len(self.shown) > 1:
            (dot, _), (comma, _) = self.shown["."], self.shown[","]
            line = max(line for _, line in self.shown.values())
            both = f"{dot} has a decimal dot, {comma} a decimal comma"
            raise refused(source, "mixed-numbers", f"the numbers of the {column} contradict each other: {both}",
                          "write all of them with one decimal sign", line)  # fmt: skip
        return next(iter(self.shown), "")


class WholeSign(DecimalSign):
    """As `DecimalSign`, of whole numbers: 1.234 has a sign between thousands, and so has 1.000 beside 950."""

    def __init__(self) -> None:
        super().__init__()
        self._thousands: dict[str, tuple[str, int]] = {}  # as `shown`, where the other reading is no whole number
        self._below = self._beyond = False  # numbers without a sign, below a thousand and from there on

    def see(self, text: str, line: int) -> None:
        """One number of the column, at its line."""
        super().see(text, line)
        if text.isdecimal():
            self._beyond |= len(text) > _GROUP
            self._below |= len(text) <= _GROUP
        elif ("." in text) != ("," in text) and len(text) <= _LONGEST:
            sign, other = ".," if "." in text else ",."
            if all(form.fullmatch(text) for form in _FORMS.values()) and not text.endswith(f"{sign}000"):
                self._thousands.setdefault(other, (text, line))

    def of(self, source: Source, column: str) -> str:
        """As of `DecimalSign`, then by what is whole."""
        self.shown = self.shown or self._thousands
        sign = super().of(source, column)
        if not sign and self.either and self._below and not self._beyond:
            return "," if "." in self.either else "."
        return sign

    def demand_told(self, source: Source, column: str, told: str, separator: str) -> None:
        """Refuse what may be a thousand or one.

        Parameters
        ----------
        source
            What is read, for errors.
        column
            Its name.
        told
            The decimal sign that it or another column shows; "" for none.
        separator
            Of the cells: a comma that is none stands between thousands.
        """
        if self.either and not told and not ("," in self.either and separator != ";"):
            one = re.split("[.,]", self.either)[0]
            raise refused(source, "mixed-numbers", f"{self.either} of the {column} may be {one} or {one}000, and no "
                          "other number tells", f"write whole numbers without a sign: {one}000 or {one}")  # fmt: skip


def signs_of(source: Source, columns: dict[str, DecimalSign], separator: str) -> tuple[dict[str, str], str]:
    """The decimal sign of each column, and how that was understood, "" where there was nothing to understand.

    Parameters
    ----------
    source
        What is read, for errors.
    columns
        Name of a column -> what its numbers say; one that says nothing follows another that does.
    separator
        Of the cells: where nothing tells, a lone sign between semicolons is the decimal one, else the dot is.
    """
    shown = {name: column.of(source, name) for name, column in columns.items()}
    told = next(filter(None, shown.values()), "")
    either = next((column.either for column in columns.values() if column.either), "")
    for name, column in columns.items():
        if isinstance(column, WholeSign):
            column.demand_told(source, name, told, separator)
    default = told or ("," if separator == ";" and "," in either else ".")
    signs = {name: sign or default for name, sign in shown.items()}
    if either and not told:
        value = number_in(either, default)
        return signs, f"with a decimal {_NAMES[default]}: no number tells, {either} is taken as {value:f}"
    if len(set(signs.values())) > 1:
        return signs, ", ".join(f"the {name} with a decimal {_NAMES[sign]}" for name, sign in signs.items())
    return signs, f"with a decimal {_NAMES[told]}" if told == "," or (told and separator == ";") else ""


class Signs:
    """Decimal signs by role, looked for in all of a source when a number first leaves them open."""

    def __init__(self, look: Callable[[], tuple[dict[str, str], str]] = lambda: ({}, "")) -> None:
        self._look = look
        self._of: dict[str, str] | None = None
        self.said = ""  # how they were understood

    def of(self, role: str) -> str:
        """The sign of a role's numbers."""
        if self._of is None:
            self._of, self.said = self._look()
        return self._of.get(role, ".")
