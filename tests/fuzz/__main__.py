"""`python -m tests.fuzz records --count N --seed S`, `python -m tests.fuzz configs --count N --seed S`."""

from __future__ import annotations

import argparse
import sys

from tests.fuzz import configs, records

WHOLE = {"records": 1_000_000, "configs": 10_000}

parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
parser.add_argument("what", choices=WHOLE)
parser.add_argument("--count", type=int, help="1,000,000 records or 10,000 configs where it is not given")
parser.add_argument("--seed", type=int, default=1)
arguments = parser.parse_args()
run = {"records": records.main, "configs": configs.main}[arguments.what]
sys.exit(run(arguments.count or WHOLE[arguments.what], arguments.seed))
