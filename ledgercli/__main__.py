"""`python -m ledgercli` and the console scripts `ledger` and `ledgercli`."""

from __future__ import annotations

import sys

from ledgercli.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
