"""What every benchmark does: run the program, read its metrics, print command, machine and JSON."""

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile

PROGRAM = os.environ.get("SHOAL_PROGRAM", "build/release/bin/shoal")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def machine():
    """One line: processor, cores, memory, kernel."""
    model = "unknown processor"
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    with open("/proc/meminfo", encoding="utf-8") as file:
        memory = int(file.readline().split()[1]) / 2**20
    return f"{model}, {os.cpu_count()} cores, {memory:.0f} GiB, Linux {platform.release()}"


def announce(name):
    print(f"bench {name}: {' '.join(sys.argv)} with {PROGRAM}")
    print(f"machine: {machine()}", flush=True)


def shoal(command, job, folder, settings):
    """Runs `shoal COMMAND JOB` in `folder`; returns the lines of its metrics file."""
    arguments = [PROGRAM, command, os.path.join(ROOT, job), "--set", f"job.folder={folder}"]
    for setting in settings:
        arguments += ["--set", setting]
    print("$ " + " ".join(arguments), flush=True)
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=1800, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def steps(lines):
    """The step lines by number, without the initial weights (step 0)."""
    return {line["step"]: line for line in lines if "event" not in line and line.get("step", 0) > 0}


def step_seconds(lines, warm_up):
    """Median time of a step: distances between decisions, the first `warm_up` left out."""
    times = [line["time_s"] for _, line in sorted(steps(lines).items())]
    return statistics.median(b - a for a, b in list(zip(times, times[1:]))[warm_up:])


def scratch():
    return tempfile.TemporaryDirectory(prefix="shoal-bench-")
