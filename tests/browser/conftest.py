"""A real site on a port of its own, and Debian's Chromium looking at it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from threading import Thread

import pytest
import uvicorn
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, Playwright, expect, sync_playwright

from app.cli.serving import reserve
from app.serve.adhoc import Adhoc
from app.web.app import create_app
from tests.web.office import MemoryStore

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

#: For axe, which doesn't ask by itself: fingers hit what is 24 pixels large, or stands apart (WCAG 2.5.8).
TARGETS = {"rules": {"target-size": {"enabled": True}}}

# However much else the machine has to do.
PATIENCE = 60_000
expect.set_options(timeout=PATIENCE)


def follow(way: Locator) -> None:
    """Click what leads to a page, and wait for that page: after a mere click tests would read the old one."""
    with way.page.expect_navigation(timeout=PATIENCE):
        way.click()


def follow_by_key(page: Page) -> None:
    """Press Enter on what leads to a page, and wait for that page."""
    with page.expect_navigation(timeout=PATIENCE):
        page.keyboard.press("Enter")


def barriers(page: Page) -> list[tuple[str, list[object]]]:
    """What axe finds on a page in light colours with all that folds unfolded, and in dark ones of contrast.

    The colours of a page are all that its scheme changes.
    """
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    found = Axe().run(page, options=TARGETS).response["violations"]
    page.emulate_media(color_scheme="dark")
    found += page.evaluate("axe.run({runOnly: ['color-contrast'], resultTypes: ['violations']})")[
        "violations"
    ]
    page.emulate_media(color_scheme="light")
    return [(fault["id"], [node["target"] for node in fault["nodes"][:3]]) for fault in found]


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """Address of a site that serves the tests' office."""
    listener = reserve("127.0.0.1", 0)
    config = uvicorn.Config(create_app(MemoryStore(), asker=Adhoc()), log_level="warning", lifespan="off")
    server = uvicorn.Server(config)
    thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    thread.join(timeout=10)


@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    """Ends with the module: while it lives, its event loop keeps others from having one."""
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="module")
def browser(playwright: Playwright) -> Iterator[Browser]:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    assert found, "The browser tests need Chromium: apt-get install chromium"
    browser = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
    yield browser
    browser.close()
