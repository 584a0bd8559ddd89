"""Everything that can go wrong for a user, as a tree; one exit code a branch.

    PlanError                     exit 1   a bug unless a branch below says otherwise
    ├── UsageError                exit 2   the command line is off
    ├── InputError                exit 3   a scenario, catalog or plan file is invalid (holds Problems)
    ├── InfeasibleError           exit 4   nothing meets every limit, proven or as the solver says
    ├── StoppedError              exit 6   no plan: the solver stopped or failed
    ├── OutputError               exit 8   a result could not be written
    └── NotProvenError            exit 9   `plan verify`: the plan holds, and that it is the best is not proven

A `Problem` is one mistake with its place and a way out; an `InputError` carries all
problems of a run at once, so that a file is mended in one go.
"""

from __future__ import annotations

from dataclasses import field

from planner.carriers import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where something stands: 1-based line and column; line 0 = the whole file."""

    file: str
    line: int = 0
    column: int = 0
    text: str = ""  # the source line, for the caret
    width: int = 1  # characters under the caret
    cut: int = 0  # characters of the line before `text`, where that is a piece of a long one

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One mistake: a kebab-case reference, a sentence, places, and a hint."""

    reference: str
    message: str
    places: tuple[Place, ...] = ()
    hint: str = ""
    severity: str = field(default="error")  # error | warning

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> list[str]:
        lines = [f"{self.severity}[{self.reference}] {self.message}"]
        for place in self.places:
            lines.append(f"  {place}")
            if place.text:
                number = str(place.line)
                lines.append(f"  {number} | {place.text}")
                lines.append(f"  {' ' * len(number)} | {' ' * (place.column - 1 - place.cut)}{'^' * place.width}")
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return lines


class PlanError(Exception):
    """Root of the tree; raised itself only for bugs."""

    exit_code = 1

    def __init__(self, *problems: Problem) -> None:
        self.problems = problems
        super().__init__("\n\n".join(str(problem) for problem in problems))

    @classmethod
    def of(cls, reference: str, message: str, *, place: Place | None = None, hint: str = "") -> PlanError:
        """An error of this branch with a single problem.

        Parameters
        ----------
        reference
            Of the problem, in kebab-case.
        message
            What is wrong.
        place
            Where it stands; None: nowhere in a file.
        hint
            A way out; empty: none.
        """
        places = (place,) if place else ()
        return cls(Problem(reference=reference, message=message, places=places, hint=hint))


class UsageError(PlanError):
    """The command line asks for something that does not exist."""

    exit_code = 2


class InputError(PlanError):
    """A scenario, catalog, model or plan file is invalid."""

    exit_code = 3


class InfeasibleError(PlanError):
    """No plan meets every limit, and that is proven."""

    exit_code = 4


class StoppedError(PlanError):
    """No plan: the solver stopped at a limit, crashed or is missing."""

    exit_code = 6


class NotProvenError(PlanError):
    """A plan file holds, but nothing in it proves what it claims: that no plan is better, or that there is none."""

    exit_code = 9


class OutputError(PlanError):
    """A result could not be written whole."""

    exit_code = 8
