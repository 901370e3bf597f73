"""The country of Alboria: every place in it is invented.

It is shaped like Spain so that the demo meets the same difficulties: 19 regions of 1 to 9 provinces,
regions that are one province, provinces that are one municipality, islands, a dominant capital.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Province:
    """A province: its tile on the map (column from the west, row from the north), size and wealth."""

    name: str
    column: int
    row: int
    coast: bool
    size: float
    wealth: float
    municipalities: int


@dataclass(frozen=True)
class Region:
    name: str
    provinces: tuple[Province, ...]


def _p(
    name: str, column: int, row: int, coast: int, size: float, wealth: float, municipalities: int
) -> Province:
    return Province(name, column, row, bool(coast), size, wealth, municipalities)


REGIONS: tuple[Region, ...] = (
    Region(
        "Solandia",
        (
            _p("Miralsol", 9, 8, 1, 15, 0.88, 8),
            _p("Puerto Lucero", 5, 9, 1, 26, 0.92, 10),
            _p("Cordalba", 6, 7, 0, 16, 0.86, 8),
            _p("Granal", 8, 8, 1, 19, 0.89, 10),
            _p("Huelmar", 4, 8, 1, 10, 0.87, 7),
            _p("Olivara", 7, 7, 0, 13, 0.82, 9),
            _p("Cabo Real", 7, 9, 1, 35, 0.95, 10),
            _p("Valdeoro", 5, 8, 0, 40, 0.94, 11),
        ),
    ),
    Region(
        "Montes Altos",
        (
            _p("Peñalta", 9, 2, 0, 5, 1.0, 8),
            _p("Turolia", 9, 4, 0, 3, 0.94, 8),
            _p("Ebrera", 8, 3, 0, 22, 1.06, 9),
        ),
    ),
    Region("Brañamar", (_p("Brañamar", 5, 0, 1, 23, 1.02, 10),)),
    Region("Islas Claras", (_p("Islas Claras", 12, 5, 1, 26, 1.03, 9),)),
    Region(
        "Islas del Alisio",
        (
            _p("Alisio Oriental", 2, 10, 1, 25, 0.9, 8),
            _p("Alisio Occidental", 1, 10, 1, 23, 0.89, 8),
        ),
    ),
    Region("Marembre", (_p("Marembre", 6, 0, 1, 13, 1.01, 8),)),
    Region(
        "Meseta Vieja",
        (
            _p("Avelar", 5, 4, 0, 4, 0.9, 7),
            _p("Burganza", 6, 1, 0, 8, 1.05, 8),
            _p("Leonara", 4, 1, 0, 10, 0.96, 8),
            _p("Palentar", 5, 1, 0, 4, 0.98, 6),
            _p("Salmedina", 4, 4, 0, 8, 0.95, 8),
            _p("Segovara", 6, 3, 0, 4, 0.97, 7),
            _p("Soriana", 7, 3, 0, 2, 0.99, 6),
            _p("Valdolar", 5, 2, 0, 12, 1.06, 8),
            _p("Zamarga", 4, 2, 0, 4, 0.87, 7),
        ),
    ),
    Region(
        "Llanura",
        (
            _p("Albaceda", 8, 6, 0, 9, 0.9, 8),
            _p("Ciudad Llana", 7, 6, 0, 11, 0.88, 8),
            _p("Concar", 8, 5, 0, 5, 0.89, 8),
            _p("Guadalar", 7, 4, 0, 6, 1.04, 8),
            _p("Toralba", 6, 5, 0, 16, 0.92, 9),
        ),
    ),
    Region(
        "Llevanya",
        (
            _p("Barcarola", 11, 3, 1, 128, 1.16, 14),
            _p("Girenda", 11, 2, 1, 17, 1.08, 9),
            _p("Lledera", 10, 2, 0, 10, 1.0, 8),
            _p("Tarraguna", 10, 3, 1, 18, 1.05, 9),
        ),
    ),
    Region(
        "Levantia",
        (
            _p("Alacena", 10, 6, 1, 39, 0.91, 10),
            _p("Castelmar", 10, 4, 1, 13, 0.98, 8),
            _p("Valenzara", 10, 5, 1, 58, 1.02, 12),
        ),
    ),
    Region(
        "Dehesa",
        (
            _p("Badalora", 4, 6, 0, 14, 0.83, 8),
            _p("Caceral", 4, 5, 0, 9, 0.84, 8),
        ),
    ),
    Region(
        "Finisterra",
        (
            _p("Corunda", 2, 0, 1, 26, 1.0, 10),
            _p("Lugueira", 3, 0, 1, 8, 0.9, 8),
            _p("Orental", 3, 1, 0, 7, 0.88, 8),
            _p("Pontebra", 2, 1, 1, 21, 0.97, 9),
        ),
    ),
    Region("Villa Real", (_p("Villa Real", 6, 4, 0, 156, 1.28, 14),)),
    Region("Segurana", (_p("Segurana", 9, 7, 1, 31, 0.89, 9),)),
    Region("Pirenar", (_p("Pirenar", 8, 1, 0, 15, 1.13, 8),)),
    Region(
        "Bizkor",
        (
            _p("Alavera", 7, 1, 0, 8, 1.14, 6),
            _p("Guiparra", 8, 0, 1, 17, 1.18, 8),
            _p("Vizmar", 7, 0, 1, 27, 1.15, 8),
        ),
    ),
    Region("Viñedo", (_p("Viñedo", 7, 2, 0, 7, 1.03, 7),)),
    Region("Puerta del Sur", (_p("Puerta del Sur", 5, 11, 1, 1.8, 1.0, 1),)),
    Region("Plaza Menor", (_p("Plaza Menor", 7, 11, 1, 1.7, 0.98, 1),)),
)

_HEADS = (
    "Villa", "Torre", "Castro", "Monte", "Fuente", "Val", "Peña", "Puebla", "Ribera", "Campo", "Aldea",
    "Molino", "Puente", "Arroyo", "Huerta", "Casa", "Robledo", "Prado", "Roca", "Mata",
)  # fmt: skip
_TAILS = (
    "alba", "clara", "hermosa", "mayor", "fría", "seca", "nueva", "buena", "honda", "quemada", "lozana",
    "rubia", "serena", "umbría", "larga", "dorada", "quieta", "lejana",
)  # fmt: skip
_PLACES = (
    "la Encina", "los Olmos", "el Rey", "la Sierra", "las Cigüeñas", "el Páramo", "los Caballeros", "la Vega",
    "el Soto", "las Torres", "el Marqués", "la Ermita", "los Infantes", "el Romero", "las Viñas", "el Alcor",
)  # fmt: skip


def municipality_names(count: int, random: np.random.Generator) -> list[str]:
    """Distinct invented names of municipalities."""
    short = [f"{head}{tail}" for head in _HEADS for tail in _TAILS]
    long = [f"{head} de {place}".replace("de el ", "del ") for head in _HEADS for place in _PLACES]
    names = np.array(short + long)
    return [str(name) for name in random.choice(names, size=count, replace=False)]
