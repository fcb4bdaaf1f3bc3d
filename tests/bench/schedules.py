#!/usr/bin/env python3
"""What the schedule brings on a slow link: four nodes in a pipeline over an emulated link of 100
Mbit/s and 5 ms, with fixed schedules and with the planner's choice; then again with recompute, which
Varuna's order is for. The device is emulated (a timed wait in place of the kernels), the tensors on
the wire are real."""

import json
import sys

from common import announce, scratch, shoal, step_seconds, steps

JOB = "configs/bench-plan.toml"
STEPS, WARM_UP = 12, 3
SETTINGS = [f"training.steps={STEPS}", "training.micro_batches=16", "nodes.local=4",
            "parallelism.depth=4", "parallelism.nodes_min=4", "emulate.rate=100Mbit/s",
            "emulate.delay=5ms"]
ORDERS = ("1f1b", "1f1b-eager", "1f1b-searched", "gpipe", "interleaved-1f1b")
RUNS = [*((name, False) for name in (*ORDERS, "auto")),
        *((name, True) for name in (*ORDERS, "varuna", "auto"))]


def main():
    announce("schedules")
    seconds, digests = {}, set()
    with scratch() as folder:
        for name, recompute in RUNS:
            label = name + (" recompute" if recompute else "")
            lines = shoal("run", JOB, f"{folder}/{label}",
                          [*SETTINGS, f"parallelism.schedule={name}",
                           f"training.recompute={str(recompute).lower()}"])
            seconds[label] = round(step_seconds(lines, WARM_UP), 4)
            digests.add(steps(lines)[STEPS]["digest"])
    if len(digests) != 1:
        sys.exit(f"not the same bits: {digests}")
    print(json.dumps({"bench": "schedules", "device": "emulated", "step_s": seconds,
                      "best_over_1f1b": round(seconds["1f1b"] / seconds["auto"], 3)}))


if __name__ == "__main__":
    main()
