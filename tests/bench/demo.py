#!/usr/bin/env python3
"""The main job, in front of your eyes: three local nodes train a small GPT on English text, one is
killed with SIGKILL at a third of the way, two join at two thirds; then one process trains the same
job undisturbed, and the weights are compared, byte for byte.

  demo.py [--json]   --json: one last line for machines
"""

import json
import os
import subprocess
import sys

from common import PROGRAM, ROOT, announce, scratch

JOB = "configs/demo.toml"


def train(command, folder):
    """Runs one training in the foreground; returns its metrics."""
    arguments = [PROGRAM, command, os.path.join(ROOT, JOB), "--set", f"job.folder={folder}"]
    print("$ " + " ".join(arguments), flush=True)
    done = subprocess.run(arguments, timeout=600, check=False)
    if done.returncode != 0:
        sys.exit(f"demo: {command} ended with exit code {done.returncode}")
    with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def main():
    announce("demo")
    with scratch() as folder:
        print("\n== three nodes; one is killed at a third, two join at two thirds ==", flush=True)
        run = train("run", f"{folder}/run")
        print("\n== the reference: one process, undisturbed ==", flush=True)
        reference = train("reference", f"{folder}/reference")
    ours, theirs = ({line["step"]: line for line in lines if "event" not in line}
                    for lines in (run, reference))
    last = max(theirs)
    differing = [step for step in sorted(theirs)
                 if ours.get(step, {}).get("digest") != theirs[step]["digest"]]
    morphs = [line for line in run if line.get("event") == "morph" and line["cause"] != "start"]
    pauses = [round(m["pause_s"], 3) for m in morphs]
    losses = [ours[step]["loss"] for step in sorted(ours) if ours[step].get("loss") is not None]
    print(f"\ndigest of the weights after step {last}")
    print(f"  through {len(morphs)} morphs  {ours.get(last, {}).get('digest')}")
    print(f"  undisturbed       {theirs[last]['digest']}")
    if differing:
        print(f"NOT THE SAME BITS: first at step {differing[0]}")
    else:
        print(f"the same bits after every one of {last} steps; training paused for "
              f"{', '.join(f'{p:.2f} s' for p in pauses)}")
    if "--json" in sys.argv[1:]:
        print(json.dumps({"demo": "churn", "same_bits": not differing, "morphs": len(morphs),
                          "pause_s": pauses, "loss_first": losses[0], "loss_last": losses[-1],
                          "digest": ours.get(last, {}).get("digest"),
                          "reference_digest": theirs[last]["digest"]}))
    sys.exit(1 if differing else 0)


if __name__ == "__main__":
    main()
