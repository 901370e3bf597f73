"""Fictional income-tax returns: seeded, so that everybody's demo is the same one.

A panel of taxpayers files in three years. Incomes are log-normal with a Pareto tail; some municipalities
hold a handful of taxpayers; some returns are filed by members of one household (the holding).
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from demo.country import REGIONS, municipality_names
from demo.shapes import write_provinces
from demo.templates import copy_templates

YEARS = (2022, 2023, 2024)
RETURNS = 600_000
SEED = 20_240_607

AGE_STARTS = (18, 25, 35, 45, 55, 65, 75)
AGE_SHARES = (0.06, 0.16, 0.21, 0.22, 0.17, 0.11, 0.07)
AGE_INCOME = (0.52, 0.82, 1.0, 1.1, 1.12, 0.86, 0.74)
BAND_STARTS = (0, 12_000, 21_000, 30_000, 60_000, 150_000)
SOURCES = (
    ("1", "Wages", "Salarios", "Salaris"),
    ("2", "Pensions", "Pensiones", "Pensions"),
    ("3", "Self-employment", "Trabajo por cuenta propia", "Treball per compte propi"),
    ("4", "Capital and property", "Capital e inmuebles", "Capital i immobles"),
    ("5", "Farming", "Actividades agrarias", "Activitats agràries"),
)
SOURCE_INCOME = (1.0, 0.82, 1.08, 1.55, 0.7)
SEXES = (("W", "Women", "Mujeres", "Dones"), ("M", "Men", "Hombres", "Homes"))


def create_demo(folder: Path, returns: int = RETURNS, seed: int = SEED) -> None:
    """Write the demo publication into ``folder``; what stands there complete is left alone.

    Parameters
    ----------
    folder : Path
        Made if absent.
    returns : int
        About how many returns in all years together.
    """
    if (folder / "publication.toml").exists():
        return
    data = folder / "data"
    data.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(seed)
    place = _write_municipalities(data / "municipalities.csv", random, returns / len(YEARS))
    _write_lists(data)
    _write_returns(data / "returns.parquet", random, *place)
    (folder / "maps").mkdir(exist_ok=True)
    write_provinces(folder / "maps" / "provinces.geojson")
    copy_templates("publication", folder)


def _write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def _write_municipalities(
    path: Path, random: np.random.Generator, taxpayers: float
) -> tuple[list[str], NDArray[np.int64], NDArray[np.float64]]:
    """The geography, and for each municipality its key, number of taxpayers and wealth."""
    names = iter(municipality_names(sum(p.municipalities for r in REGIONS for p in r.provinces), random))
    total = sum(province.size for region in REGIONS for province in region.provinces)
    keys: list[str] = []
    sizes: list[NDArray[np.int64]] = []
    wealth: list[NDArray[np.float64]] = []
    rows: list[Sequence[object]] = []
    province_number = 0
    for region_number, region in enumerate(REGIONS, start=1):
        for province in region.provinces:
            province_number += 1
            count = province.municipalities
            share = np.arange(1, count + 1) ** -1.25 * random.uniform(0.8, 1.25, count)
            size = np.maximum(np.rint(taxpayers * province.size / total * share / share.sum()), 30)
            # Mountain and border villages: what makes a publication of taxes delicate.
            thin = min(count - 1, int(random.integers(0, 3)))
            if thin:
                size[-thin:] = random.integers(4, 22, thin)
            sizes.append(size.astype(np.int64))
            wealth.append(province.wealth * random.uniform(0.9, 1.12, count))
            for rank in range(1, count + 1):
                key = f"{province_number:02d}{rank:02d}"
                keys.append(key)
                name = province.name if rank == 1 else next(names)
                rows.append(
                    (
                        key, name, f"{province_number:02d}", province.name,
                        f"{region_number:02d}", region.name, province.column, province.row,
                    )
                )  # fmt: skip
    header = (
        "municipality", "municipality_name", "province", "province_name", "region", "region_name",
        "map_column", "map_row",
    )  # fmt: skip
    _write_csv(path, header, rows)
    return keys, np.concatenate(sizes), np.concatenate(wealth)


def _write_lists(data: Path) -> None:
    languages = ("en", "es", "ca")
    _write_csv(data / "sexes.csv", ("sex", *languages, "position"), [(*s, i) for i, s in enumerate(SEXES)])
    _write_csv(data / "sources.csv", ("source", *languages), SOURCES)
    ages = []
    for start, end in zip(AGE_STARTS, (*AGE_STARTS[1:], None), strict=True):
        if end is None:
            ages.append((start, f"{start} and over", f"{start} y más", f"{start} i més"))
        else:
            ages.append((start, f"{start}–{end - 1}", f"{start}–{end - 1}", f"{start}–{end - 1}"))
    _write_csv(data / "ages.csv", ("age", *languages), ages)
    bands = []
    for number, (start, end) in enumerate(zip(BAND_STARTS, (*BAND_STARTS[1:], None), strict=True), start=1):
        low, high = f"{start:,}".replace(",", "."), f"{end or 0:,}".replace(",", ".")
        if not start:
            bands.append((number, f"Under {end:,} €", f"Menos de {high} €", f"Menys de {high} €"))
        elif end is None:
            bands.append((number, f"{start:,} € or more", f"{low} € o más", f"{low} € o més"))
        else:
            bands.append((number, f"{start:,} to {end:,} €", f"De {low} a {high} €", f"De {low} a {high} €"))
    _write_csv(data / "bands.csv", ("band", *languages), bands)


def _tax(income: NDArray[np.float64]) -> NDArray[np.float64]:
    """Tax by marginal rates; the first euro already pays, so that nobody's tax is nil."""
    edges = np.array([0, 12_000, 21_000, 30_000, 60_000, 150_000], dtype=np.float64)
    rates = np.array([0.02, 0.11, 0.19, 0.28, 0.38, 0.45])
    widths = np.append(np.diff(edges), np.inf)
    slices = np.clip(income[:, None] - edges, 0, widths)
    return np.asarray(slices @ rates)


def _write_returns(
    path: Path,
    random: np.random.Generator,
    keys: list[str],
    sizes: NDArray[np.int64],
    wealth: NDArray[np.float64],
) -> None:
    # Some of the panel move in or away: places grow and shrink.
    people = np.repeat(np.arange(len(keys)), np.maximum(np.rint(sizes * 1.07), 1).astype(np.int64))
    n = len(people)
    woman = random.random(n) < 0.47
    age = random.choice(len(AGE_STARTS), size=n, p=AGE_SHARES)
    source_shares = np.array([[0.86, 0.02, 0.09, 0.02, 0.01], [0.12, 0.74, 0.06, 0.06, 0.02]])
    cumulative = source_shares.cumsum(axis=1)[(age >= 5).astype(np.int64)]
    source = (random.random(n)[:, None] > cumulative[:, :-1]).sum(axis=1)
    level = (
        np.log(21_500)
        + np.log(wealth[people])
        + np.log(np.asarray(AGE_INCOME)[age])
        + np.log(np.asarray(SOURCE_INCOME)[source])
        - 0.17 * woman
        + random.normal(0, 0.52, n)
    )
    # One in seventy has an income of another kind: a Pareto tail of exponent 1.9.
    tail = random.random(n) < 0.014
    level[tail] += 0.6 + random.exponential(1 / 1.9, int(tail.sum()))
    income = np.exp(np.minimum(level, np.log(2e7)))

    # Joint households: neighbours in the panel, hence of the same municipality.
    holding = np.arange(n)
    joined = np.flatnonzero((random.random(n) < 0.09) & (np.roll(people, -1) == people))
    joined = joined[joined + 1 < n]
    holding[joined + 1] = joined
    holding = np.minimum(holding, holding[holding])

    columns: dict[str, list[NDArray[np.generic]]] = {
        name: [] for name in ("respondent", "holding", "year", "municipality", "sex", "age", "band", "source")
    }
    columns |= {"income": [], "tax": []}
    starts = np.array(BAND_STARTS)
    provinces = np.array([int(key[:2]) for key in keys])
    trend = random.normal(0.006, 0.009, provinces.max() + 1)[provinces] + random.normal(0, 0.008, len(keys))
    moment = random.random(n)
    for number, year in enumerate(YEARS):
        filing = np.flatnonzero(moment < 0.955 + trend[people] * (number - 1) + random.normal(0, 0.004, n))
        amount = np.maximum(
            1,
            np.rint(
                income[filing] * (1.032 + 0.004 * number) ** number * random.lognormal(0, 0.06, len(filing))
            ),
        )
        due = np.maximum(1, np.rint(_tax(amount) * random.uniform(0.86, 1.0, len(filing))))
        columns["respondent"].append(filing + 1)
        columns["holding"].append(holding[filing] + 1)
        columns["year"].append(np.full(len(filing), year, dtype=np.int32))
        columns["municipality"].append(np.array(keys)[people[filing]])
        columns["sex"].append(np.where(woman[filing], "W", "M"))
        columns["age"].append(np.array(AGE_STARTS, dtype=np.int32)[age[filing]])
        columns["band"].append(np.searchsorted(starts, amount, side="right").astype(np.int32))
        columns["source"].append(np.array([key for key, *_ in SOURCES])[source[filing]])
        columns["income"].append(amount.astype(np.int64))
        columns["tax"].append(due.astype(np.int64))
    table = pa.table({name: pa.array(np.concatenate(parts)) for name, parts in columns.items()})
    unfinished = path.with_suffix(".part")
    pq.write_table(table, unfinished, compression="zstd")
    os.replace(unfinished, path)
