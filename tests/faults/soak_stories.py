"""Stories of faults on the embedded network, as many as asked: `make soak STORIES=2000 SEED=7`.

A line of JSON for each that went wrong, and one in the end; the seed of a story repeats its choices.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time

from stories import play

AT_ONCE = 25


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stories", type=int, default=2000)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    asked = parser.parse_args()
    logging.disable()
    end, played, bad = time.monotonic() + 60 * asked.minutes, 0, 0
    while played < asked.stories and time.monotonic() < end:
        first = asked.seed + played
        some = range(first, first + min(AT_ONCE, asked.stories - played))
        for seed, trouble in play(some).items():
            bad += 1
            print(json.dumps({"seed": seed, "failed": trouble}), flush=True)
        played += len(some)
    told = {"stories": played, "bad": bad, "first_seed": asked.seed}
    print(json.dumps(told), flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
