#!/usr/bin/env python3
"""How long a plan takes: 10,000 nodes and 64 mixed ones; the simulator's events a second; how far
the search is from trying everything, on 200 random small cases."""

import os
import subprocess
import sys

from common import PROGRAM, announce


def main():
    announce("plan-speed")
    program = os.path.join(os.path.dirname(PROGRAM), "bench_plan_speed")
    print("$ " + program, flush=True)
    sys.exit(subprocess.run([program], check=False, timeout=900).returncode)


if __name__ == "__main__":
    main()
