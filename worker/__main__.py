"""``python -m worker``: the same as ``reckon``."""

from worker.cli import main

main()
