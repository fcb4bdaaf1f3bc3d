#!/usr/bin/env python3
"""How near two nodes come to twice one node's speed, and what a slow link costs.

The reference, one node and a pipeline of two nodes train the same job, in turn; then the two nodes
again over an emulated link of 100 Mbit/s. `bound` is that of a flush schedule, m / (m + p - 1).
"""

import json

from common import announce, scratch, shoal, step_seconds

JOB = "configs/bench-pipeline.toml"
STEPS, WARM_UP = 10, 2
TWO = ["nodes.local=2", "parallelism.depth=2"]


def measure(command, name, folder, settings):
    lines = shoal(command, JOB, f"{folder}/{name}", [f"training.steps={STEPS}", *settings])
    return step_seconds(lines, WARM_UP)


def main():
    announce("pipeline")
    with scratch() as folder:
        # Each is run twice and the better kept: the machine is not ours alone.
        def best(command, name, settings):
            return min(measure(command, f"{name}-{i}", folder, settings) for i in range(2))

        reference = best("reference", "reference", [])
        one = best("run", "one", ["nodes.local=1"])
        two = best("run", "two", TWO)
        shaped = best("run", "shaped", [*TWO, "emulate.rate=100Mbit/s"])
    micro_batches, depth = 16, 2
    bound = micro_batches / (micro_batches + depth - 1)
    print(json.dumps({
        "bench": "pipeline", "reference_s": round(reference, 4), "one_node_s": round(one, 4),
        "two_nodes_s": round(two, 4), "bound": round(bound, 4),
        "efficiency": round(one / (2 * two) / bound, 4), "shaped_ratio": round(two / shaped, 4)}))


if __name__ == "__main__":
    main()
