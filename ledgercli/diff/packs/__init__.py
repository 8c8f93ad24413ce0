"""Two versions of a pack: what is written otherwise in them, and which verdicts can differ by it.

Invariants:
* A verdict that can differ is shown by an example, and both of its verdicts are the enforcer's own.
* That verdicts are the same is said only where it was proved: the rules are the same once they are written alike, or
  every combination of the values that they tell apart was judged. Else it is said how much was tried.
* Nothing is random: the same files give the same answer.
"""

from ledgercli.diff.packs.compared import PackDifference, differences
from ledgercli.diff.packs.found import Found, ToolDifference
from ledgercli.diff.packs.written import Change

__all__ = ["Change", "Found", "PackDifference", "ToolDifference", "differences"]
