"""The code under every table, run as readers would run it, fetches exactly what is on the screen."""

from __future__ import annotations

import subprocess
import sys

import httpx
import pytest
from lxml import html

from app.cli.serving import running
from app.web.app import create_app
from tests.web.office import MemoryStore
from tests.web.visitor import read_table

PRINT = "\nprint(table[['OBS_VALUE', 'OBS_STATUS']].to_csv(index=False, header=False, float_format='%.2f'))"


@pytest.mark.parametrize(
    "state",
    [
        "/en/s/territory/places?p.year=2021",
        "/en/s/territory/places?p.year=2022&sort.table=-1",
    ],
)
def test_the_python_code_reads_what_the_page_shows(state: str) -> None:
    with running(create_app(MemoryStore())) as address:
        page = html.fromstring(httpx.get(address + state).content)
        for section in page.xpath("//section[@class='block']"):
            cells = read_table(section.xpath(".//table")[0])
            (code,) = section.xpath(".//dt[text()='Python']/following-sibling::dd[1]/pre/text()")
            (other,) = section.xpath(".//dt[text()='R']/following-sibling::dd[1]/pre/text()")
            assert code.split('"')[1] == other.split('"')[1]
            told = subprocess.run(
                [sys.executable, "-c", code + PRINT], capture_output=True, text=True, check=True, timeout=60
            ).stdout
            rows = [line.rsplit(",", 1) for line in told.split()]
            assert len(rows) == len(cells)
            for (value, status), cell in zip(rows, cells, strict=True):
                if status == "A":
                    assert float(value) == float(cell.text.replace(",", ""))
                else:
                    assert (value, cell.text) == ("", {"Q": "[c]", "M": "–"}[status])
