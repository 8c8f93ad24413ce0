"""The standard library of the policy language, as one table.

Every function that needs no agent: CEL's own, and the standard's extensions `strings`, `math` and `encoders`. Macros
(`all`, `map`, `cel.bind`, …) are syntax and not here. What a function does is in the module that its subject names.
"""

from __future__ import annotations

from typing import Final

from ledgercli.cel.conversions import ACCESSORS, CONVERSIONS
from ledgercli.cel.maths import MATHS
from ledgercli.cel.regex import MATCHES
from ledgercli.cel.strings import STRINGS
from ledgercli.cel.types import Function

STANDARD: Final[tuple[Function, ...]] = (*STRINGS, *MATCHES, *CONVERSIONS, *ACCESSORS, *MATHS)
