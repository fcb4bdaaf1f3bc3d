#!/usr/bin/env python3
"""How long a loss by kill -9 and a join stop the training of a model of 10 million parameters.

One run with 20 kills and 20 joins in turn; the pause of each, by part, is what the supervisor
measured: last decided step before to first decided step after, less one step's own time.
"""

import json
import math
import sys

from common import announce, scratch, shoal, steps

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


def main():
    announce("morph")
    settings = ["churn.event=[" + ",".join(
        f'{{at_step={DISTANCE * (2 * i + 1)},action="kill"}},{{at_step={DISTANCE * (2 * i + 2)},action="join"}}'
        for i in range(ROUNDS)) + "]"]
    length = [f"training.steps={DISTANCE * (2 * ROUNDS + 2)}"]
    with scratch() as folder:
        lines = shoal("run", JOB, f"{folder}/run", [*length, *settings])
        reference = steps(shoal("reference", JOB, f"{folder}/reference", length))
        run = steps(lines)
    morphs = [line for line in lines if line.get("event") == "morph"]
    losses = [m for m in morphs if m["cause"] == "loss"]
    joins = [m for m in morphs if m["cause"] == "arrival"]
    if len(losses) < ROUNDS or len(joins) < ROUNDS:
        sys.exit(f"expected {ROUNDS} losses and joins, saw {len(losses)} and {len(joins)}")
    same = all(run[s]["digest"] == reference[s]["digest"] for s in reference)
    memory = next(line for line in lines if line.get("event") == "memory")
    print(json.dumps({"bench": "morph", "loss": summary(losses), "join": summary(joins),
                      "same_bits": same, "idle_rss_mb": memory["idle_rss_mb"],
                      "training_rss_mb": memory["training_rss_mb"], "state_mb": memory["state_mb"]}))


if __name__ == "__main__":
    main()
