"""Pictures of a running site for the documentation: ``python -m tests.browser.screenshots URL FOLDER``."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.conftest import ARGUMENTS

PAGES = {
    "contents": "/en/",
    "choosing": "/en/s/territory/regions?edit=table",
    "municipalities": "/en/s/territory/municipalities?p.province=27",
    "nested-headers": "/en/s/people/province-sex?open.table.0=Province.01",
    "hidden-cells": "/en/s/territory/larger-municipalities",
    "map": "/en/s/territory/map",
    "charts": "/es/s/people/age-profile",
    "search": "/ca/search?q=renda",
    "confidentiality": "/es/confidentiality",
    "programs": "/en/api",
}
SIZES = {"desktop": (1280, 860), "phone": (360, 720)}


def take(address: str, folder: Path) -> None:
    """One picture of each page in light on a desktop and in dark on a phone, as big as the screen."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        for (size, (width, height)), scheme in zip(SIZES.items(), ("light", "dark"), strict=True):
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
            for name, path in PAGES.items():
                page.goto(address + path)
                page.evaluate("document.fonts.ready")
                if size == "phone" and page.locator(".block").count():
                    page.evaluate("document.querySelector('.block').scrollIntoView()")
                page.screenshot(path=folder / f"{name}-{size}.png")
        browser.close()


if __name__ == "__main__":
    take(sys.argv[1], Path(sys.argv[2]))
