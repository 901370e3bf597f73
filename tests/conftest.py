"""For all tests."""

from __future__ import annotations

import os
import signal

from hypothesis import settings

# Hundreds of processes that tests start would each compile the program anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A shell that runs the tests in the background has them ignore interrupts, and what they start too.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Linear algebra of one test isn't to wait for that of another on the same cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# However slow the machine is, or busy: how long an example takes is no property of the code.
settings.register_profile("celosia", deadline=None)
settings.load_profile("celosia")
