"""A plugin that fails the whole run when a test was skipped: nothing may be left out in silence."""

from __future__ import annotations

import pytest


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = len(reporter.stats.get("skipped", ())) if reporter is not None else 0
    if skipped and exitstatus == pytest.ExitCode.OK:
        reporter.write_line(f"{skipped} tests were skipped, which counts as a failure.", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
