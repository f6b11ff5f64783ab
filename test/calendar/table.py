"""Writes table.txt: when rules fire, by an implementation that shares nothing with ours.

    python3 test/calendar/table.py > test/calendar/table.txt

Zones come from Python's zoneinfo, days from its datetime, and cron is read here. It works the other way round from ours: it
asks zoneinfo all along the span, cuts it where the offset changes, and lists the times that fit piece by piece. The
years are past ones, on which Python's tz database (2025b when this was made) and that of Node's ICU (2025c) agree.

A line is `zone|first instant|last instant|changes of the clocks|` for a block, then `cron|first tick|gaps between ticks` for
each rule. Instants are seconds since 1970, changes are hexadecimal minutes since 1970. Gaps are seconds: `900x3` is three of
them, `[900x3 83700]x88` is a group that repeats 88 times.
"""

import sys
from datetime import date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

SIX_YEARS = ("2019-01-01", "2025-01-01")
BLOCKS = [(name, *SIX_YEARS) for name in [
    "UTC", "Europe/Oslo", "America/New_York", "America/Santiago", "America/St_Johns", "America/Havana", "America/Nuuk",
    "Africa/Casablanca", "Africa/Cairo", "Asia/Beirut", "Asia/Gaza", "Asia/Kathmandu", "Asia/Tehran", "Australia/Lord_Howe",
    "Pacific/Apia", "Pacific/Chatham", "Antarctica/Troll", "Antarctica/Casey",
]] + [
    # A whole day skipped; and clocks set from 23:30 to midnight of the next day.
    ("Pacific/Apia", "2011-12-01", "2012-02-01"),
    ("Asia/Pyongyang", "2018-04-01", "2018-07-01"),
]
RULES = [
    # Named hours.
    "0 0 * * *", "30 1 * * *", "0 2 * * *", "30 2 * * *", "15 3 * * *", "30 23 * * *", "0 0,12 * * *", "30 1,2,3 * * *",
    "*/15 2 * * *", "*/20 22-23,0-1 * * *", "0 9-17 * * MON-FRI", "* 1 * * SUN",
    # Recurring hours.
    "0 * * * *", "*/15 * * * *", "30 */2 * * *", "0 */6 * * *", "45 1-23/3 * * *", "5 0-23 * * *",
    # Days.
    "0 8 * * 1-5", "0 12 L * *", "30 2 L 3,9,10 *", "0 7 * * MON#1", "0 7 * * 5#L", "0 2 * * 0L", "0 7 * * 3#5", "0 6 15W * *",
    "0 6 1W * *", "0 6 31W * *", "0 6 LW * *", "0 0 13 * FRI", "0 0 29 2 *", "0 10 1,15,L * *", "0 0 */10 * *",
    "0 4 * JAN,JUL SUN", "0 0 1 1 *", "30 2 * 3,10 0", "0 5 * * fri-sun", "0 5 * * */3",
    # Seconds.
    "30 0 2 * * *", "*/20 59 1 * * *", "15,45 30 * * * *", "0 0 0 1 */3 *", "59 59 23 L 2,12 *",
]
MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
DAYS = "sun mon tue wed thu fri sat".split()
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def numbers(text, low, high, names=()):
    """The values of a field, as a set."""
    for i, name in enumerate(names):
        text = text.lower().replace(name, str(i + low))
    found = set()
    for item in text.split(","):
        span, _, step = item.partition("/")
        first, _, last = span.partition("-")
        first, last = (low, high) if span == "*" else (int(first), int(last or first))
        if names == DAYS and last == 0 < first:
            last = 7
        found.update(range(first, last + 1, int(step or 1)))
    return {each % 7 for each in found} if names == DAYS else found


def last_of_month(day):
    return (day.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)


def nearest_weekday(day):
    """The Monday to Friday of the same month that is nearest to a day."""
    near = [day + timedelta(days=n) for n in (0, -1, 1, -2, 2)]
    return next(each for each in near if each.month == day.month and each.weekday() < 5)


def fits_day_of_month(day, item):
    if item == "L":
        return day == last_of_month(day)
    if item == "LW":
        return day == nearest_weekday(last_of_month(day))
    if item.endswith("W"):
        wanted = int(item[:-1])
        return wanted <= last_of_month(day).day and day == nearest_weekday(day.replace(day=wanted))
    return day.day in numbers(item, 1, 31)


def fits_weekday(day, item):
    item = item.lower()
    which = None
    if "#" in item:
        item, which = item.split("#")
    elif item.endswith("l"):
        item, which = item[:-1], "l"
    if day.isoweekday() % 7 not in numbers(item, 0, 6, DAYS):
        return False
    if which == "l":
        return (day + timedelta(days=7)).month != day.month
    return which is None or (day.day - 1) // 7 + 1 == int(which)


def fits_date(day, dom, month, dow):
    if day.month not in numbers(month, 1, 12, MONTHS):
        return False
    by_dom = any(fits_day_of_month(day, item) for item in dom.split(","))
    by_dow = any(fits_weekday(day, item) for item in dow.split(","))
    if dom != "*" and dow != "*":
        return by_dom or by_dow
    return by_dom and by_dow


def readings(rule, first, last):
    """All matching times of a clock that never changes, in seconds since 1970."""
    fields = rule.split()
    second, minute, hour, dom, month, dow = fields if len(fields) == 6 else ["0", *fields]
    clock = sorted(
        h * 3600 + m * 60 + s
        for h in numbers(hour, 0, 23) for m in numbers(minute, 0, 59) for s in numbers(second, 0, 59)
    )
    for ordinal in range(first.toordinal(), last.toordinal() + 1):
        day = date.fromordinal(ordinal)
        if fits_date(day, dom, month, dow):
            midnight = (day - date(1970, 1, 1)).days * 86400
            yield from (midnight + each for each in clock)


def is_fixed(rule):
    hour = rule.split()[-4]
    return "*" not in hour and "/" not in hour and len(numbers(hour, 0, 23)) < 24


def offset_at(zone, at):
    return int((EPOCH + timedelta(seconds=at)).astimezone(zone).utcoffset().total_seconds())


def pieces(zone, start, end):
    """Spans of one offset: (from, to, offset). Asks about every quarter of an hour, and in one that differs, every minute."""
    found = [[start, end, offset_at(zone, start)]]
    for quarter in range(start, end, 900):
        if offset_at(zone, quarter + 900) == found[-1][2]:
            continue
        for at in range(quarter, min(quarter + 901, end), 60):
            offset = offset_at(zone, at)
            if offset != found[-1][2]:
                found[-1][1] = at
                found.append([at, end, offset])
    return found


def ticks(rule, spans, first, last):
    wanted = list(readings(rule, first, last))
    found = set()
    if is_fixed(rule):
        # Each time once: when a clock first reaches or passes it.
        highest = spans[0][0] + spans[0][2] - 1
        for begin, end, offset in spans:
            for reading in wanted:
                if highest < reading < end + offset:
                    found.add(max(begin, reading - offset))
            highest = max(highest, end + offset - 1)
    else:
        for begin, end, offset in spans:
            found.update(reading - offset for reading in wanted if begin <= reading - offset < end)
    return sorted(found)


def run_lengths(items):
    packed = []
    for item in items:
        if packed and packed[-1][0] == item:
            packed[-1][1] += 1
        else:
            packed.append([item, 1])
    return [item if count == 1 else f"{item}x{count}" for item, count in packed]


def grouped(words):
    """Folds groups of up to twelve words that repeat."""
    out, at = [], 0
    while at < len(words):
        best, saved = 1, 0
        for size in range(2, 13):
            group, times = words[at:at + size], 1
            while words[at + times * size:at + (times + 1) * size] == group:
                times += 1
            if (times - 1) * size > saved:
                best, saved, repeated = size, (times - 1) * size, times
        if saved == 0:
            out.append(words[at])
            at += 1
        else:
            out.append(f"[{' '.join(words[at:at + best])}]x{repeated}")
            at += best * repeated
    return out


def main():
    for name, first, last in BLOCKS:
        first, last = date.fromisoformat(first), date.fromisoformat(last)
        start, end = ((each - date(1970, 1, 1)).days * 86400 for each in (first, last))
        spans = pieces(ZoneInfo(name), start, end)
        print(f"{name}|{start}|{end}|{' '.join(format(each[0] // 60, 'x') for each in spans[1:])}|")
        for rule in RULES:
            found = ticks(rule, spans, first - timedelta(days=2), last + timedelta(days=2))
            gaps = [str(b - a) for a, b in zip(found, found[1:])]
            print(f"{rule}|{found[0] if found else ''}|{' '.join(grouped(run_lengths(gaps)))}")
        print(name, first, len(spans) - 1, "changes", file=sys.stderr)


main()
