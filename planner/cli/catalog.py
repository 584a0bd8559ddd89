"""`plan catalog`: what can be had, at what price, and where each figure comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli import complete, flags
from planner.cli.frame import Form, Frame, command, usage

if TYPE_CHECKING:
    from planner.catalog.importers.imported import Imported
    from planner.catalog.model import Catalog
    from planner.catalog.refresh import Refreshed

app = typer.Typer(help="Devices, shapes and offers, with source and date.", no_args_is_help=True)

imports = typer.Typer(help="Price lists of other tools, as offers.", no_args_is_help=True)

Patterns = list[str] | None


def list_offers(
    frame: Frame,
    output: flags.Output = Form.table,
    out: flags.OutFile = None,
    group_by: Annotated[
        str | None, typer.Option("--group-by", metavar="KEY", help="device, provider or region: the cheapest of each.")
    ] = None,
    device: Annotated[
        Patterns,
        typer.Option("--device", metavar="PATTERN", help="Only these; repeatable.", autocompletion=complete.devices),
    ] = None,
    region: Annotated[Patterns, typer.Option("--region", metavar="PATTERN", help="Only these; repeatable.")] = None,
    provider: Annotated[Patterns, typer.Option("--provider", metavar="PATTERN", help="Only these; repeatable.")] = None,
    pricing: Annotated[
        str | None, typer.Option("--pricing", metavar="MODEL", help="Only this price model, as on_demand.")
    ] = None,
    hardware: flags.HardwareFolder = None,
    prices: flags.Prices = None,
    price: flags.Price = None,
    allow_suspect: flags.AllowSuspect = False,
) -> None:
    """List offers, the most compute for the money first."""
    from planner.cli.find import load_catalog
    from planner.report import catalog_view as report

    named: dict[str, Patterns] = {"device": device, "region": region, "provider": provider}
    patterns = {what: tuple(given or ()) for what, given in named.items()}
    wanted = report.Filter(**patterns, pricing=pricing, suspect=allow_suspect)
    catalog = load_catalog(hardware, prices=prices, price=price, frame=frame)
    rows = report.offer_rows(catalog, wanted)
    why = "" if rows else report.unsold(catalog, wanted) or "the filters together leave none"
    grouped = report.group_key(group_by)
    frame.emit(report.render_offers(rows, output.value, group_by=grouped, why_none=why, **frame.view(out)), out)


def show(
    frame: Frame,
    identifier: Annotated[
        str,
        typer.Argument(metavar="ID", help="A device (or alias), shape or offer.", autocompletion=complete.devices),
    ],
    output: flags.Output = Form.table,
    out: flags.OutFile = None,
    hardware: flags.HardwareFolder = None,
    prices: flags.Prices = None,
    price: flags.Price = None,
) -> None:
    """Show one device, shape or offer: every fact with its source, date and status."""
    from planner.cli.find import load_catalog
    from planner.report import catalog_view as report

    sheet = report.sheet(load_catalog(hardware, prices=prices, price=price), identifier)
    frame.emit(report.render_sheet(sheet, output.value, **frame.view(out)), out)


Named = Annotated[str | None, typer.Argument(metavar="DIR", help="As --hardware.")]


def _one_of(named: str | None, hardware: str | None) -> str | None:
    if named and hardware:
        raise usage("not-together", "the catalog is named twice", "leave --hardware out")
    return named or hardware


def check(
    frame: Frame,
    named: Named = None,
    output: flags.Output = Form.table,
    out: flags.OutFile = None,
    hardware: flags.HardwareFolder = None,
    prices: flags.Prices = None,
    price: flags.Price = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against", metavar="DIR", help="Another catalog: figures a factor of two apart; default is one."
        ),
    ] = None,
) -> None:
    """Check a catalog: sources, bounds, prices that a minimiser would seek out. Exit 3 on errors."""
    from planner.catalog.check import check_catalog
    from planner.cli import clock
    from planner.cli.find import load_catalog
    from planner.report import problems as report

    hardware = _one_of(named, hardware)
    catalog = load_catalog(hardware, prices=prices, price=price)
    table = load_catalog(None).devices if hardware else None
    other = _named(against) if against else None
    found = check_catalog(catalog, other, table=table, today=clock.today())
    frame.emit(report.findings(found, f"catalog {catalog.name}", output.value, **frame.view(out)), out)
    raise typer.Exit(3 if any(problem.severity == "error" for problem in found) else 0)


def freeze(
    frame: Frame,
    named: Named = None,
    out: Annotated[
        str | None, typer.Option("--out", metavar="FILE", help="Write there; default: only the digest is printed.")
    ] = None,
    output: flags.Output = Form.table,
    hardware: flags.HardwareFolder = None,
    prices: flags.Prices = None,
    price: flags.Price = None,
) -> None:
    """Write a catalog as one file in a stable order, and print the SHA-256 that plans record."""
    from planner.catalog.frozen import frozen_text
    from planner.cli.find import load_catalog

    hardware = _one_of(named, hardware)
    from planner.report.catalog_changes import render_frozen

    catalog = load_catalog(hardware, prices=prices, price=price)
    if out == "-":
        frame.emit(frozen_text(catalog))
        return
    if out is not None:
        from planner import files

        files.write_text(out, frozen_text(catalog))
    frame.emit(render_frozen(catalog, out or "", output.value, **frame.view()))


def _named(folder: str) -> Any:
    """The catalog of an argument: a folder or frozen file, or default."""
    from planner.catalog.load import load_catalog

    return load_catalog(None if folder == "default" else folder)


def diff(
    frame: Frame,
    old: Annotated[str, typer.Argument(metavar="A", help="A catalog folder, or default.")],
    new: Annotated[str, typer.Argument(metavar="B", help="Another one.")],
    output: flags.Output = Form.table,
    out: flags.OutFile = None,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit 7 when they differ.")] = False,
    scenario: Annotated[
        str | None,
        typer.Option(
            "--scenario", metavar="FILE", help="Also what it does to the plan of this scenario: plan compare."
        ),
    ] = None,
    settings: flags.Settings = None,
    case: flags.Case = None,
) -> None:
    """Show what sets two catalogs apart: facts, offers, what hardware costs by its units, sources, flags."""
    from planner.catalog.diff import difference
    from planner.catalog.load import load_catalog
    from planner.report.catalog_changes import render_difference

    before, after = (load_catalog(None if folder == "default" else folder) for folder in (old, new))
    found, plans = difference(before, after), None
    if scenario is not None:
        from planner.cli.compare import compared
        from planner.cli.sides import Given

        cases = () if case is None else (case,)
        given = Given(frame=frame, scenario=scenario, settings=tuple(settings or ()), cases=cases)
        plans = compared(given, [old, new], cause=True).document
    elif settings or case is not None:
        raise usage("missing-option", "--set and --case are of a scenario, of which?", "add --scenario FILE")
    view = frame.view(out) | {"full": frame.verbose > 0, "plans": plans}
    frame.emit(render_difference(found, (old, new), output.value, **view), out)
    raise typer.Exit(7 if exit_code and not found.empty else 0)


Files = Annotated[list[str], typer.Argument(metavar="FILES", help="Price lists: PROVIDER/vms.csv.")]
Folder = Annotated[str, typer.Argument(metavar="DIR", help="Folder of price lists: PROVIDER.csv.")]
Into = Annotated[
    str | None,
    typer.Option("--into", metavar="FOLDER", help="Write offers/PROVIDER.csv files there; else only the report."),
]
Source = Annotated[str, typer.Option("--source", metavar="TEXT", help="Where the files are from, as path@commit.")]
AsOf = Annotated[str, typer.Option("--as-of", metavar="DATE", help="Date of the prices, as 2026-11-21.")]


def import_skypilot(
    frame: Frame,
    files: Files,
    output: flags.Output = Form.table,
    out: flags.OutFile = None,
    into: Into = None,
    provider: Annotated[str, typer.Option("--provider", metavar="NAME", help="Default: the folder's name.")] = "",
    source: Source = "",
    as_of: AsOf = "",
    hardware: flags.HardwareFolder = None,
) -> None:
    """Read price lists of SkyPilot's catalog; every row is taken, or listed with the reason."""
    from planner.catalog.importers.tool_lists import read_skypilot
    from planner.catalog.load import load_catalog

    catalog, dates = load_catalog(hardware), _dates(as_of)
    found = [read_skypilot(file, catalog, provider=provider, source=source, **dates) for file in files]
    _imported(frame, found, None if hardware else catalog, output, out, into)


def import_gpuhunt(
    frame: Frame,
    folder: Folder,
    output: flags.Output = Form.table,
    out: flags.OutFile = None,
    into: Into = None,
    source: Source = "",
    as_of: AsOf = "",
    hardware: flags.HardwareFolder = None,
) -> None:
    """Read price lists of gpuhunt's catalog; every row is taken, or listed with the reason."""
    from planner.catalog.importers.tool_lists import read_folder
    from planner.catalog.load import load_catalog

    catalog = load_catalog(hardware)
    found = read_folder(folder, catalog, source=source, **_dates(as_of))
    _imported(frame, found, None if hardware else catalog, output, out, into)


Lists = Annotated[list[str], typer.Argument(metavar="FILES", help="Price lists that you have downloaded.")]


def refresh(
    frame: Frame,
    files: Lists,
    output: flags.Output = Form.table,
    out: flags.OutFile = None,
    into: Annotated[
        str | None,
        typer.Option("--into", metavar="FOLDER", help="Write a catalog there that extends the packaged one."),
    ] = None,
    as_of: AsOf = "",
    provider: Annotated[
        str, typer.Option("--provider", metavar="NAME", help="Whose prices, where no file or folder says it.")
    ] = "",
    price_model: Annotated[
        str, typer.Option("--price-model", metavar="MODEL", help="On which terms, where no file says it.")
    ] = "",
    rate: Annotated[
        list[str] | None,
        typer.Option("--rate", metavar="CODE=USD", help="Dollars for one EUR, as EUR=1.08; repeatable."),
    ] = None,
    tax: Annotated[str, typer.Option("--tax", metavar="TEXT", help="Of the prices: excluded, or included:19%.")] = "",
    whole: Annotated[
        bool, typer.Option("--whole", help="The lists are complete: what they lack is sold no more.")
    ] = False,
    source: Source = "",
    hardware: flags.HardwareFolder = None,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit 7 when anything changed.")] = False,
) -> None:
    """Show what downloaded price lists change: new, gone, dearer, cheaper; write it as a catalog of your own."""
    from planner.catalog.importers.cloud_lists import ListTerms
    from planner.catalog.load import load_catalog
    from planner.catalog.refresh import read_list, refreshed
    from planner.report.catalog_changes import render_refreshed
    from planner.units import counted

    catalog, terms = load_catalog(hardware), ListTerms.of(tuple(rate or ()), tax)
    given: dict[str, str] = {"provider": provider, "price_model": price_model, "source": source, **_dates(as_of)}
    found = [read_list(file, catalog, terms, **given) for file in files]
    changes = refreshed(found, catalog)
    told = [] if as_of else ["the prices have no date: --as-of says of which day they are"]
    if changes.gone and not whole:
        told.append(f"{counted(len(changes.gone), 'offer')} that the lists lack stay: --whole takes out what is gone")
    written = _refreshed(found, changes, into, whole, told) if into else []
    view = frame.view(out) | {"written": ", ".join(written), "told": told, "full": frame.verbose > 0}
    frame.emit(render_refreshed(changes, found, output.value, **view), out)
    changed = changes.new or changes.dearer or changes.cheaper or (whole and changes.gone)
    raise typer.Exit(7 if exit_code and changed else 0)


def _refreshed(found: list[Imported], changes: Refreshed, into: str, whole: bool, told: list[str]) -> list[str]:
    """Write the lists as a catalog that extends the packaged one; what is there already is the user's own."""
    from pathlib import Path

    from planner.catalog.importers.imported import merged
    from planner.catalog.refresh import overlay_text
    from planner.files import write_text

    written = []
    for name, text in merged(found).items():
        written.append(f"{into}/offers/{name}.csv")
        write_text(written[-1], text)
    if not written:
        told.append("no row became an offer: nothing was written")
        return []
    if Path(into, "catalog.yaml").exists():
        told.append(
            f"{into}/catalog.yaml is there already and stays as it is"
            + (
                f": take out of it what is gone yourself ({len(changes.gone):,} offers)"
                if whole and changes.gone
                else ""
            )
        )
    else:
        written.append(f"{into}/catalog.yaml")
        write_text(written[-1], overlay_text(changes, Path(into).resolve().name, whole=whole))
    return written


def _dates(text: str) -> dict[str, str]:
    """The date of the prices, where it is known, and the day on which they are copied."""
    from planner.catalog.reading import is_date
    from planner.cli import clock

    if text and not is_date(text):
        raise usage("bad-date", f"--as-of is '{text}'", "write 2026-11-21")
    return {"as_of": text, "copied": clock.today().isoformat()}


def _imported(
    frame: Frame, found: list[Imported], shipped: Catalog | None, output: Form, out: str | None, into: str | None
) -> None:
    """Write what was imported and show it; over the packaged catalog the folder becomes one that extends it."""
    from pathlib import Path

    from planner.catalog.importers.imported import extending_text, merged
    from planner.files import write_text
    from planner.report.catalog_changes import render_imported

    written = []
    for provider, text in merged(found).items() if into else ():
        written.append(f"{into}/offers/{provider}.csv")
        write_text(written[-1], text)
    if into and shipped and not Path(into, "catalog.yaml").exists():  # what is there already is the user's own
        written.append(f"{into}/catalog.yaml")
        write_text(written[-1], extending_text(found, shipped, Path(into).resolve().name))
    view = frame.view(out) | {"written": ", ".join(written), "full": frame.verbose > 0}
    frame.emit(render_imported(found, output.value, **view), out)


def register(parent: typer.Typer) -> None:
    """Add the command and its parts."""
    listing = ("plan catalog list --group-by device", "plan catalog list --device 'h100-*' --region 'us-*' -o csv")
    command(app, "list", examples=listing)(list_offers)
    command(app, "show", examples=("plan catalog show h100-sxm-80gb", "plan catalog show sn40l -o json"))(show)
    checking = ("plan catalog check", "plan catalog check --hardware my-hardware --against default -o json")
    command(app, "check", examples=checking)(check)
    freezing = ("plan catalog freeze", "plan catalog freeze --hardware my-hardware --out my-hardware.json")
    command(app, "freeze", examples=freezing)(freeze)
    comparing = (
        "plan catalog diff default my-hardware",
        "plan catalog diff hardware/ my-hardware/ --scenario scenarios/llama.yaml --exit-code -o md",
    )
    command(app, "diff", examples=comparing)(diff)
    skypilot = (
        "plan catalog import skypilot catalogs/v8/lambda/vms.csv",
        "plan catalog import skypilot catalogs/v8/lambda/vms.csv --into my-hardware --as-of 2026-11-21",
    )
    gpuhunt = ("plan catalog import gpuhunt catalog/", "plan catalog import gpuhunt catalog/ --into my-hardware")
    command(imports, "skypilot", examples=skypilot)(import_skypilot)
    command(imports, "gpuhunt", examples=gpuhunt)(import_gpuhunt)
    refreshing = (
        "plan catalog refresh catalogs/v8/lambda/vms.csv --as-of 2026-11-21",
        "plan catalog refresh azure.json --rate EUR=1.08 --tax excluded --into my-hardware --as-of 2026-11-21",
    )
    command(app, "refresh", examples=refreshing)(refresh)
    app.add_typer(imports, name="import")
    parent.add_typer(app, name="catalog")
