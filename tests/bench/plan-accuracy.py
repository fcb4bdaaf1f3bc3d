#!/usr/bin/env python3
"""Step times that the pipeline simulator predicts from a profile taken just before, against those
of real runs: depths 1 to 4, several numbers of micro-batches, links emulated at three rates. The
device is emulated (a timed wait in place of the kernels), the tensors on the wire are real."""

import json
import os
import re
import statistics
import subprocess
import sys

from common import PROGRAM, ROOT, announce, scratch, step_seconds

JOB = "configs/bench-plan.toml"
STEPS, WARM_UP = 10, 3
RATES = ["1Gbit/s", "300Mbit/s", "100Mbit/s"]
# (nodes, micro-batches, rate)
LAYOUTS = ([(1, 8, "1Gbit/s"), (1, 16, "1Gbit/s")]
           + [(nodes, 8, rate) for nodes in (2, 3, 4) for rate in RATES]
           + [(4, 16, rate) for rate in RATES] + [(2, 16, "100Mbit/s")])


def program(arguments):
    print("$ " + " ".join([PROGRAM, *arguments]), flush=True)
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=600,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def settings(pairs):
    return [argument for pair in pairs for argument in ("--set", pair)]


def profile(rate):
    lines = program(["profile", os.path.join(ROOT, JOB), "--json",
                     *settings([f"emulate.rate={rate}"])])
    return json.loads(lines.splitlines()[-1])


def measure(nodes, micro_batches, rate, folder):
    """Seconds a step, and the blocks of each stage."""
    out = program(["run", os.path.join(ROOT, JOB), *settings([
        f"job.folder={folder}", f"training.steps={STEPS}", f"nodes.local={nodes}",
        f"parallelism.depth={nodes}", f"parallelism.nodes_min={nodes}",
        f"training.micro_batches={micro_batches}", f"emulate.rate={rate}"])])
    layout = re.search(r"preparing view 1 [^;]*", out).group(0)
    stages = [(int(a), int(b) + 1) for a, b in re.findall(r"\d+:\[(\d+)-(\d+)\]", layout)]
    if len(stages) != nodes:
        sys.exit(f"expected {nodes} stages, found: {layout}")
    with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as file:
        return step_seconds([json.loads(line) for line in file], WARM_UP), stages


def link(measured):
    """One-way times by size as latency and rate."""
    latency = measured[0]["one_way"]["s"]
    return [{"bytes": m["bytes"], "latency": f"{latency * 1e9:.0f}ns",
             "rate": f"{m['bytes'] / max(m['one_way']['s'] - latency, 1e-7):.0f}B/s"}
            for m in measured[1:]]


def predict(nodes, micro_batches, stages, profiled, folder):
    def total(blocks, key):
        return f"{sum(b[key]['s'] for b in blocks) * 1e9:.0f}ns"
    costs = []
    for begin, end in stages:
        blocks = profiled["blocks"][begin:end]
        costs.append({"forward": total(blocks, "forward"), "backward": total(blocks, "backward"),
                      "optimizer": total(blocks, "optimizer"),
                      "input_bytes": blocks[0]["boundary_bytes"]})
    scenario = {"schedule": {"name": "1f1b-eager", "ranks": nodes, "micro_batches": micro_batches},
                "stages": costs, "link": link(profiled["links"])}
    path = os.path.join(folder, "scenario.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(scenario, file)
    return json.loads(program(["simulate", path, "--json"]))["step_s"]


def main():
    announce("plan-accuracy")
    rows = []
    with scratch() as folder:
        profiles = {}
        for number, (nodes, micro_batches, rate) in enumerate(LAYOUTS):
            if rate not in profiles:
                profiles[rate] = profile(rate)
            measured, stages = measure(nodes, micro_batches, rate, f"{folder}/{number}")
            predicted = predict(nodes, micro_batches, stages, profiles[rate], folder)
            rows.append({"nodes": nodes, "micro_batches": micro_batches, "rate": rate,
                         "measured_s": round(measured, 4), "predicted_s": round(predicted, 4),
                         "error": round(predicted / measured - 1, 4)})
            print(rows[-1], flush=True)
    errors = [abs(row["error"]) for row in rows]
    print(json.dumps({"bench": "plan-accuracy", "device": "emulated", "rows": rows,
                      "median_error": round(statistics.median(errors), 4),
                      "worst_error": round(max(errors), 4)}))


if __name__ == "__main__":
    main()
