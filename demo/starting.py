"""A small commented publication for those who begin one, with data of invented firms."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from demo.templates import copy_templates

_TOWNS = {
    "North": ("Alder", "Birch", "Cedar", "Dogwood", "Elm", "Fir"),
    "Centre": ("Gorse", "Hazel", "Ivy", "Juniper", "Kapok", "Larch", "Maple", "Nutmeg"),
    "South": ("Oak", "Pine", "Quince", "Rowan", "Spruce"),
}
_ACTIVITIES = ("Farming", "Industry", "Building", "Trade", "Services")


def create_starter(folder: Path, firms: int = 600, seed: int = 7) -> None:
    """Write the publication into ``folder``, which is empty or absent."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(seed)
    towns = [(region, town) for region, names in _TOWNS.items() for town in names]
    sizes = np.concatenate([np.arange(1, len(names) + 1) ** -1.9 for names in _TOWNS.values()])
    chosen = random.choice(len(towns), size=firms, p=sizes / sizes.sum())
    activity = random.choice(len(_ACTIVITIES), size=firms, p=(0.02, 0.17, 0.16, 0.31, 0.34))
    turnover = np.maximum(1, np.rint(random.lognormal(5.5, 1.4, firms))).astype(int)
    owner = np.where(random.random(firms) < 0.06, np.roll(np.arange(firms), 1), np.arange(firms)) + 1
    with (folder / "data" / "firms.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("firm", "owner", "region", "town", "activity", "turnover"))
        for row in range(firms):
            region, town = towns[chosen[row]]
            writer.writerow((row + 1, owner[row], region, town, _ACTIVITIES[activity[row]], turnover[row]))
    copy_templates("starter", folder)
