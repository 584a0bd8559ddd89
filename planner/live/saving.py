"""A changed scenario as a file of its own, beside the one that it was made from; no file is ever replaced."""

from __future__ import annotations

from pathlib import Path

from planner import files
from planner.errors import OutputError
from planner.live.knobs import Changes, settings_of
from planner.report.escape import file_stem
from planner.scenario.load import parse_scenario, with_settings
from planner.scenario.schema import Scenario
from planner.scenario.shipped import PREFIX
from planner.yamlfile.writing import block_text

_FOLDER = "scenarios"


def default_name(scenario: Scenario) -> str:
    """llama-live.yaml."""
    return f"{file_stem(scenario.name)}-live.yaml"


def save(scenario: Scenario, changes: Changes, name: str) -> str:
    """Write the scenario with some changes; what was written, in words.

    Files that a scenario that ships names are copied with it: what is written is whole in this folder.

    Parameters
    ----------
    scenario
        As it was at the start; the new file goes into its folder, or into this one where it ships.
    changes
        As on the page.
    name
        Of the file, with or without its ending; what may not stand in a file name becomes a hyphen.

    Raises
    ------
    InputError
        The changes cannot be read, or the scenario would not be.
    UsageError
        There are too many changes, or one is too long.
    OutputError
        A file is there already, or it cannot be written.
    """
    changed = with_settings(scenario, settings_of(scenario, changes))
    shipped = scenario.file.startswith(PREFIX)
    folder = Path() if shipped else Path(scenario.file).parent
    stem = file_stem(name.removesuffix(".yaml").removesuffix(".yml"))
    target = folder / f"{stem}.yaml"
    if target.exists():
        hint = "save it under another name"
        raise OutputError.of("not-written", f"{target} is there already, and is not replaced", hint=hint)
    text = f"# {scenario.file}, changed by plan live\n{block_text({**changed.resolved, 'name': stem})}"
    beside = _named_files(changed) if shipped else {}
    for file, content in beside.items():
        files.write_text(file, content)
    parse_scenario(text, file=str(target))
    files.write_text(target, text)
    more = f", with {', '.join(beside)} that it names" if beside else ""
    return f"wrote {target}{more}: plan solve {target}"


def _named_files(scenario: Scenario) -> dict[str, str]:
    """Files beside the scenarios that ship, as far as a scenario names them and they are not here: name and text."""
    texts = set(_texts(scenario.resolved))
    found = [path for path in files.list_files(files.data_folder(_FOLDER)) if path.name in texts]
    return {path.name: files.read_text(path) for path in found if not Path(path.name).exists()}


def _texts(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for below in value.values() for text in _texts(below)]
    if isinstance(value, list):
        return [text for below in value for text in _texts(below)]
    return [value] if isinstance(value, str) else []
