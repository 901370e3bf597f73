"""For all tests."""

from __future__ import annotations

import os

# Hundreds of processes that tests start would each compile the program anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
