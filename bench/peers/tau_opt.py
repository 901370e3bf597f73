"""Run τ-Argus's optimal method on a JJ file: ``python tau_opt.py FILE.jj SECONDS`` → one JSON line."""

import json
import os
import sys
import tempfile
import time

from pytauargus._tauargus import HiTaSCtrl

source, seconds = sys.argv[1], float(sys.argv[2])
# A fresh folder each time: the engine leaves scratch files that break its next run.
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    answer = os.path.join(folder, "answer.txt")
    began = time.process_time()
    code = HiTaSCtrl().full_jj(
        in_file_jj=source, out_file=answer, max_time=max(1, round(seconds / 60)), out_dir=folder + "/"
    )
    taken = time.process_time() - began
    hidden = []
    if os.path.exists(answer):
        with open(answer) as stream:
            hidden = [int(word) for word in stream.read().split()]
print(json.dumps({"hidden": hidden, "seconds": taken, "proven": code == 0}))
