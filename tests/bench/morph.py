#!/usr/bin/env python3
"""How long a loss by kill -9 and a join stop the training of a model of 10 million parameters.

One run with 20 kills and 20 joins in turn; the pause of each, by part, is what the supervisor
measured: last decided step before to first decided step after, less one step's own time.
"""

import json
import math
import os
import signal
import subprocess
import sys
import time

from common import PROGRAM, ROOT, announce, scratch, shoal, steps

JOB = "configs/bench-morph.toml"
ROUNDS, DISTANCE = 20, 4


def percentile(values, share):
    """Nearest rank."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def summary(morphs):
    pauses = [m["pause_s"] for m in morphs]
    parts = {}
    for morph in morphs:
        for part, seconds in morph["parts_s"].items():
            parts.setdefault(part, []).append(seconds)
    return {"count": len(pauses), "p50_s": round(percentile(pauses, 0.5), 4),
            "p95_s": round(percentile(pauses, 0.95), 4), "max_s": round(max(pauses), 4),
            "parts_s": {part: round(percentile(v, 0.5), 4) for part, v in sorted(parts.items())}}


def ask(folder):
    """What `shoal status` says of the run in `folder`, None while nobody answers."""
    done = subprocess.run([PROGRAM, "status", os.path.join(ROOT, JOB), "--json", "--set",
                           f"job.folder={folder}"], capture_output=True, text=True, timeout=30,
                          check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def memory(folder, settings, enough):
    """Starts a run, waits until all its nodes say what they hold and `enough` is true of its state,
    and interrupts it. Returns its nodes."""
    arguments = [PROGRAM, "run", os.path.join(ROOT, JOB), "--quiet", "--set", f"job.folder={folder}"]
    for setting in settings:
        arguments += ["--set", setting]
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        try:
            deadline = time.monotonic() + 120
            while time.monotonic() < deadline:
                state = ask(folder)
                if state and enough(state) and all(n["resident_bytes"] for n in state["nodes"]):
                    return state["nodes"]
                time.sleep(0.2)
            sys.exit("no memory figures within two minutes")
        finally:
            run.send_signal(signal.SIGINT)


def largest(nodes, key):
    return round(max(node[key] for node in nodes) / 2**20, 1)


def main():
    announce("morph")
    settings = ["churn.event=[" + ",".join(
        f'{{at_step={DISTANCE * (2 * i + 1)},action="kill"}},'
        f'{{at_step={DISTANCE * (2 * i + 2)},action="join"}}'
        for i in range(ROUNDS)) + "]"]
    length = [f"training.steps={DISTANCE * (2 * ROUNDS + 2)}"]
    with scratch() as folder:
        idle = memory(f"{folder}/idle", ["nodes.local=2", "parallelism.nodes_min=3"],
                      lambda state: len(state["nodes"]) == 2)
        busy = memory(f"{folder}/busy", ["nodes.local=2"], lambda state: state["step"] >= 4)
        lines = shoal("run", JOB, f"{folder}/run", [*length, *settings])
        reference = steps(shoal("reference", JOB, f"{folder}/reference", length))
        run = steps(lines)
    morphs = [line for line in lines if line.get("event") == "morph"]
    losses = [m for m in morphs if m["cause"] == "loss"]
    joins = [m for m in morphs if m["cause"] == "arrival"]
    if len(losses) < ROUNDS or len(joins) < ROUNDS:
        sys.exit(f"expected {ROUNDS} losses and joins, saw {len(losses)} and {len(joins)}")
    same = all(run[s]["digest"] == reference[s]["digest"] for s in reference)
    print(json.dumps({"bench": "morph", "loss": summary(losses), "join": summary(joins),
                      "same_bits": same, "idle_rss_mb": largest(idle, "resident_bytes"),
                      "training_rss_mb": largest(busy, "resident_bytes"),
                      "state_mb": largest(busy, "planned_bytes")}))


if __name__ == "__main__":
    main()
