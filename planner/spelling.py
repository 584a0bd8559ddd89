"""Words that a mistyped one may stand for."""

from __future__ import annotations

from collections.abc import Iterable


def closest(word: str, known: Iterable[str]) -> list[str]:
    """Known words that a mistyped one may stand for, best first: by distance, then by common beginning or end."""
    import difflib

    known = list(dict.fromkeys(known))
    low = word.lower().replace("-", "_")
    by_form = {name.lower().replace("-", "_"): name for name in known}
    near = [by_form[form] for form in difflib.get_close_matches(low, by_form, n=3, cutoff=0.72)]
    for form, name in by_form.items():
        short = min(len(low), len(form)) >= 3
        if short and name not in near and (form.startswith(low) or low.startswith(form) or low.endswith(f"_{form}")):
            near.append(name)
    return near[:3]
