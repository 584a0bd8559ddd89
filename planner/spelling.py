"""Words that a mistyped one may stand for."""

from __future__ import annotations

from collections.abc import Collection, Iterable

_FORMATS_MEANT = {  # what `framework` or people call a program, and the format of `plan export` that is made for it
    "megatron": "torchrun", "megatron-lm": "torchrun", "fsdp": "torchtitan", "jax": "maxtext",
    "tensorrt-llm": "trt-llm", "tensorrt": "trt-llm", "k8s": "kubernetes",
}  # fmt: skip


def choice_meant(word: str, choices: Collection[str]) -> str:
    """The choice that a word may stand for; "" none."""
    other = _FORMATS_MEANT.get(word.lower(), "")
    return other if other in choices else next(iter(closest(word.lower(), choices)), "")


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
