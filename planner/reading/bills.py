"""Bills: spend by service and day of FOCUS, AWS, Azure, Google and Oracle tables; currencies apart, never added."""

from __future__ import annotations

import contextlib
import csv
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal

from planner.carriers import dataclass
from planner.reading.columns import DayOrder, DecimalSign, epoch_unit_s, number_in, plain, signs_of, written_day
from planner.reading.kinds import NOTHING, Asked, Kind, Match, Piece, Reading, Skips
from planner.reading.requests import separator_of
from planner.reading.source import Source, refused
from planner.reading.tables import csv_text, names_of, places_of, printable, records_by_role, rows_of

_LARGEST = Decimal(10) ** 15  # of one line
_MOST_CURRENCIES = 40
_MOST_SERVICES = 2_000
_MOST_CELLS = 400_000  # of currency, day and service
_MOST_IDS = 5_000_000
_MOST_BEFORE = 10  # lines before the names of columns
_OTHERS = "(other services)"
_SHOWN = 12
_LONGEST_EPOCH = 20  # digits


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A form of bills: role -> plain names of its column; `second` is a further cost of the same line, never added."""

    name: str
    title: str
    roles: Mapping[str, Sequence[str]]
    marks: tuple[str, ...]  # roles that tell it from others
    spend: str  # which cost is the spend
    second: str = ""  # what the second cost is called


FORMS = (
    Form(
        name="FOCUS", title="bill in the form of FOCUS", spend="BilledCost",
        second="effective cost (of commitments too)",
        marks=("cost", "currency", "day", "service", "category", "provider"),
        roles={
            "cost": ("billedcost",), "second": ("effectivecost", "amortizedcost"),
            "currency": ("billingcurrency", "billedcurrency"), "day": ("chargeperiodstart",),
            "service": ("servicename",), "category": ("chargecategory", "chargetype"),
            "provider": ("providername", "serviceprovidername", "provider"),
        },
    ),
    Form(
        name="AWS CUR", title="cost and usage report of AWS", spend="lineItem/UnblendedCost",
        second="cost of the public on-demand prices", marks=("cost", "currency", "day", "service", "category"),
        roles={
            "cost": ("lineitemunblendedcost",), "second": ("pricingpublicondemandcost",),
            "currency": ("lineitemcurrencycode",), "day": ("lineitemusagestartdate",),
            "service": ("lineitemproductcode",), "category": ("lineitemlineitemtype",), "id": ("identitylineitemid",),
            "interval": ("identitytimeinterval",),
        },
    ),
    Form(
        name="Azure", title="cost export of Azure", spend="the cost in the billing currency",
        second="cost in US dollars, as the export converts it", marks=("cost", "currency", "day", "service", "meter"),
        roles={
            "cost": ("costinbillingcurrency", "pretaxcost", "cost", "extendedcost"), "second": ("costinusd",),
            "currency": ("billingcurrency", "billingcurrencycode", "currency", "currencycode"),
            "day": ("date", "usagedatetime", "usagedate"), "service": ("metercategory",),
            "meter": ("meterid", "meterguid", "resourceguid"), "category": ("chargetype",),
        },
    ),
    Form(
        name="Google Cloud", title="billing export of Google Cloud", spend="cost, before credits",
        marks=("cost", "currency", "day", "service", "sku"),
        roles={
            "cost": ("unroundedcost", "cost"), "currency": ("currency",), "day": ("usagestarttime", "usagestartdate"),
            "service": ("servicedescription",),
            "sku": ("skudescription", "skuid"), "category": ("costtype",), "credits": ("credits",),
        },
    ),
    Form(
        name="Oracle Cloud", title="cost report of Oracle Cloud", spend="cost/myCost",
        marks=("cost", "currency", "day", "service"),
        roles={
            "cost": ("costmycost",), "currency": ("costcurrencycode",), "day": ("lineitemintervalusagestart",),
            "service": ("productservice",), "id": ("lineitemreferenceno",), "interval": ("lineitemintervalusagestart",),
        },
    ),
    Form(  # of anybody: what a page of a cloud or an accountant writes
        name="a table of costs", title="bill", spend="the cost of a line", second="", marks=("cost", "day", "service"),
        roles={
            "cost": ("costinbillingcurrency", "cost", "costs", "amount", "totalcost", "spend"),
            "currency": ("billingcurrency", "currency", "currencycode"),
            "day": ("date", "usagedate", "usagestartdate", "day", "startdate", "invoicedate"),
            "service": ("servicename", "service", "product", "productname", "resourcetype", "description", "sku"),
        },
    ),
)  # fmt: skip
_ANYBODY = FORMS[-1].name
_NEEDED = ("cost", "day", "service")
_NAMED_UNIT = re.compile(r"\(([^()]{1,5})\)\s*$")  # Cost (€)
_SYMBOLS = {"€": "EUR", "£": "GBP"}  # a dollar may be of any country
_MONEY = re.compile(  # a cost as spreadsheets show it, with its currency; accountants put credits in parentheses
    r"(\()?([-\u2212])?\s?([A-Z]{0,3}[$€£¥₹]|[A-Z]{3})?\s?([-\u2212])?(\d[\d.,'\u2019\s]{0,40}?)\s?([A-Z]{0,3}[$€£¥₹]|[A-Z]{3})?\)?"
)
_AMOUNT = re.compile(r"""["']amount["']\s*:\s*["']?(-?\d{1,15}(?:\.\d{1,20})?(?:[eE]-?\d{1,2})?)""")


def _form_of(names: Sequence[str]) -> tuple[Form, float, tuple[str, ...]]:
    """The form that fits columns best, how well, and which of its columns are missing."""
    best, score, lacks = FORMS[0], -1.0, tuple[str, ...]()
    for form in FORMS:
        places = places_of(names, form.roles)
        missing = tuple(form.roles[role][0] for role in form.marks if role not in places)
        there = 1 - len(missing) / len(form.marks)
        if there > score and (form.name != _ANYBODY or not missing):
            best, score, lacks = form, there, missing
    return best, score, lacks


def _names_of(source: Source) -> tuple[list[str], str]:
    """As `names_of`; of the first lines the one that fits a form best: exports may say whose they are before it."""
    names, separator = names_of(source)
    if not names and source.is_text:  # a first line with a number: that of the invoice
        separator = separator_of(next((line for line in source.first_lines if line.strip()), ""))
    lines = [line for line in source.first_lines[1:_MOST_BEFORE] if separator and separator in line]
    with contextlib.suppress(csv.Error):
        found = [names, *csv.reader(lines, delimiter=separator or ",")]
        return max(found, key=lambda each: _form_of(each)[1]), separator
    return names, separator


def recognise(source: Source) -> Match:
    """A cost in a currency, on a day, for a service, under the names of a publisher."""
    names, _ = _names_of(source)
    if not names:
        return NOTHING
    form, score, missing = _form_of(names)
    stems = {plain(name) for name in names}
    version = _version(stems) if form.name == "FOCUS" else ""
    score *= 0.65 if form.name == _ANYBODY else 0.98
    return Match(score=score, missing=missing, tool=form.name, version=version,
                 found=tuple(role for role in form.marks if role in places_of(names, form.roles)))  # fmt: skip


def _version(stems: set[str]) -> str:
    """The version of FOCUS, by the columns that it brought."""
    if stems & {"serviceprovidername", "hostprovidername", "contractapplied", "allocatedmethodid"}:
        return "1.3"
    if stems & {"invoiceid", "pricingcurrency", "billingaccounttype", "subaccounttype"}:
        return "1.2"
    if stems & {"capacityreservationid", "skumeter", "skupricedetails", "servicesubcategory"}:
        return "1.1"
    return "1.0" if "billingcurrency" in stems and "chargecategory" in stems else "before 1.0"


def cost_of(text: str, sign: str = ".") -> Decimal | None:
    """A cost as it is written with a decimal sign, exactly; None for anything else."""
    found = number_in(text, sign)
    return found if found is not None and abs(found) <= _LARGEST else None


def day_of(text: str, day_first: bool = False) -> str:
    """The day of a time as YYYY-MM-DD, "" when it is none; of 9/2/2023 the month stands first unless it is said."""
    unit_s = epoch_unit_s(float(text)) if text.isdecimal() and len(text) < _LONGEST_EPOCH else None
    if unit_s:
        return datetime.fromtimestamp(float(text) * unit_s, UTC).date().isoformat()
    try:
        return written_day(text, day_first)[0].isoformat()
    except ValueError:
        return ""


class Spend:
    """Sums of costs by currency, day and service."""

    def __init__(self) -> None:
        self.cells: defaultdict[tuple[str, str, str], Decimal] = defaultdict(Decimal)
        self.categories: defaultdict[tuple[str, str], Decimal] = defaultdict(Decimal)
        self.second: defaultdict[str, Decimal] = defaultdict(Decimal)
        self.credits: defaultdict[str, Decimal] = defaultdict(Decimal)
        self.lines: Counter[str] = Counter()
        self._services: set[str] = set()

    def takes(self, currency: str) -> bool:
        """Whether a currency is one of those that are there, or may be one more."""
        return currency in self.lines or len(self.lines) < _MOST_CURRENCIES

    def add(self, currency: str, day: str, service: str, cost: Decimal, category: str = "") -> None:
        """A line of the bill.

        Parameters
        ----------
        currency
            As the bill calls it, which `takes` allows; empty: it says none.
        day
            ISO date.
        service
            What was paid for; the 2,001st one and further ones are added up as others.
        cost
            In the currency; below 0 it is a credit.
        category
            What kind of charge it is; empty: the bill does not say it.
        """
        if service not in self._services:
            if len(self._services) >= _MOST_SERVICES:
                service = _OTHERS
            self._services.add(service)
        key = (currency, day, service)
        if key not in self.cells and len(self.cells) >= _MOST_CELLS:
            key = (currency, day, _OTHERS)
        self.cells[key] += cost
        if (currency, category) in self.categories or len(self.categories) < _MOST_SERVICES:
            self.categories[currency, category] += cost
        self.lines[currency] += 1

    def told(self, reading: Reading, second: str = "", thing: str = "service") -> None:
        """Figures by currency, the largest first, and the whole as a table.

        Parameters
        ----------
        reading
            Takes figures, notes and the table.
        second
            What the further cost of the lines is called, which is shown apart; empty: there is none.
        thing
            What is called service here, in the singular: for figures and for a column of the table.
        """
        for currency, lines in self.lines.most_common():
            unit = currency or "no currency said"
            mine = {key[1:]: cost for key, cost in self.cells.items() if key[0] == currency}
            services: defaultdict[str, Decimal] = defaultdict(Decimal)
            days: defaultdict[str, Decimal] = defaultdict(Decimal)
            for (day, service), cost in mine.items():
                services[service] += cost
                days[day] += cost
            several = f" in {unit}" if len(self.lines) > 1 else ""
            reading.show(f"spend{several}", float(sum(mine.values())), unit)
            if len(self.lines) > 1:
                reading.show(f"lines{several}", lines)
            if second and currency in self.second:
                reading.show(
                    f"{second}{several}", float(self.second[currency]), "USD" if "US dollars" in second else unit
                )
            if self.credits.get(currency):
                reading.show(f"credits, not in the spend{several}", float(self.credits[currency]), unit)
            reading.show(f"days{several}", len(days))
            reading.show(f"first day{several}", min(days))
            reading.show(f"last day{several}", max(days))
            reading.show(f"spend of a day, mean{several}", float(sum(days.values()) / len(days)), unit)
            dearest = max(days, key=lambda each: (days[each], each))
            reading.show(f"spend of the dearest day, {dearest}{several}", float(days[dearest]), unit)
            ranked = sorted(services.items(), key=lambda each: (-each[1], each[0]))
            for service, cost in ranked[:_SHOWN]:
                reading.show(f"{thing} {printable(service) or '(no name)'}{several}", float(cost), unit)
            if len(ranked) > _SHOWN:
                rest = sum((cost for _, cost in ranked[_SHOWN:]), Decimal())
                reading.show(f"{len(ranked) - _SHOWN} further {thing}s{several}", float(rest), unit)
            for (_, category), cost in sorted(item for item in self.categories.items() if item[0][0] == currency):
                if category:
                    reading.show(f"charged as {printable(category, 40)}{several}", float(cost), unit)
        if len(self.lines) > 1:
            reading.note(f"{len(self.lines)} currencies are listed apart: they are never added")
        if "" in self.lines:
            reading.note(f"{self.lines['']:,} lines say no currency")
        reading.understood["currency"] = ", ".join(currency or "not said" for currency, _ in self.lines.most_common())
        rows = ([currency, day, service, cost] for (currency, day, service), cost in sorted(self.cells.items()))
        text = csv_text(["currency", "day", thing, "cost"], rows)
        says = f"spend by {thing} and day, {len(self.cells):,} rows"
        reading.pieces.append(Piece(what="history", name="spend.csv", text=text, says=says))


def currency_of(text: str) -> str:
    """A currency as bills write it: three capitals, or the words of a unit of one's own."""
    return printable(text.strip().upper(), 20)


def read(source: Source, asked: Asked) -> Reading:
    """Sums of the costs of every line that has a day and a number."""
    names, separator = _names_of(source)
    form, _, missing = _form_of(names)
    reading = Reading(kind="bill", title=form.title, source=source.name, tool=form.name, of="lines")
    places = places_of(names, form.roles)
    if any(role not in places for role in _NEEDED):
        raise refused(source, "missing-column", f"{source.name} is no bill that is read: no {', '.join(missing[:4])}",
                      "a cost, a day and a service under the names of FOCUS, AWS, Azure, Google or Oracle")  # fmt: skip
    order, signs, numbers = _written(source, form, separator)
    spend = Spend()
    ids: set[int] = set()
    unit = _NAMED_UNIT.search(names[places["cost"]]) if "currency" not in places else None
    said = _SYMBOLS.get(unit.group(1), unit.group(1)) if unit else ""  # of all lines, in the name of the column
    for line, row in _rows(source, form, separator, reading.skipped):
        cost = cost_of(row.get("cost", ""), signs["cost"])
        day = day_of(row.get("day", ""), order.day_first)
        currency = currency_of(row.get("currency", said))
        if cost is None:
            reading.skipped.add("no number for a cost", line)
            continue
        if not day:
            reading.skipped.add("no day", line)
            continue
        if not spend.takes(currency):
            reading.skipped.add(f"more than {_MOST_CURRENCIES} currencies", line)
            continue
        if row.get("id"):
            key = hash((row["id"], row.get("interval", ""), row["cost"]))
            if key in ids:
                reading.skipped.add("a line that stands twice, by its id", line)
                continue
            if len(ids) < _MOST_IDS:
                ids.add(key)
        reading.taken += 1
        spend.add(currency, day, row.get("service", "")[:200], cost, row.get("category", "")[:100])
        if row.get("second") and (second := cost_of(row["second"], signs["second"])) is not None:
            spend.second[currency] += second
        if "amount" in row.get("credits", ""):
            for amount in _AMOUNT.findall(row["credits"][:20_000]):
                spend.credits[currency] += Decimal(amount)
    if not reading.taken:
        reasons = "; ".join(f"{count:,} of them: {why}" for why, (count, _) in reading.skipped.reasons.items())
        raise refused(source, "nothing-taken", f"no line of {source.name} could be taken", reasons or "it has no rows")
    own = form.name != "Google Cloud" or "credits" in places
    reading.understood["spend"] = form.spend if own else "cost; credits are lines of their own"
    reading.understood["days"] = "as written, of the begin of each line's time"
    if order.said:
        reading.understood["days"] += f"; {order.said}"
    if numbers:
        reading.understood["numbers"] = numbers
    spend.told(reading, form.second)
    return reading


def _rows(source: Source, form: Form, separator: str, skipped: Skips) -> Iterator[tuple[int, dict[str, str]]]:
    rows = rows_of(source, form.roles, _NEEDED, skipped) if separator else records_by_role(source, form.roles, skipped)
    for line, row in rows:
        for role in ("cost", "second"):
            written = row.get(role, "")[:80]
            shown = None if (written[:1] + written[-1:]).isdigit() else _MONEY.fullmatch(written)
            if shown and (shown[1] or shown[3] or shown[6]):
                row[role] = ("-" if shown[1] or shown[2] or shown[4] else "") + shown[5]
                if role == "cost" and (sign := shown[3] or shown[6]):
                    row.setdefault("currency", _SYMBOLS.get(sign, sign))
        yield line, row


def _written(source: Source, form: Form, separator: str) -> tuple[DayOrder, dict[str, str], str]:
    """How days and numbers are written, by all lines: one of them says what the others leave open."""
    order, columns = DayOrder(), {"cost": DecimalSign(), "second": DecimalSign()}
    for line, row in _rows(source, form, separator, Skips()):
        order.see(row.get("day", ""))
        for role, column in columns.items():
            column.see(row.get(role, ""), line)
    return order, *signs_of(source, columns, separator)


KINDS = (
    Kind(name="bill", title="bill",
         looks_for="a cost, currency, day and service, as a table or JSON (FOCUS, AWS CUR, Azure, Google, Oracle)",
         recognise=recognise, read=read),
)  # fmt: skip
