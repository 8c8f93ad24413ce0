"""Two views of one run, made from its lines: one for the next decision, one for people.

Pure. `seen` keeps what matters of a step, `folds` what many came to, `facts` writes values in little room, `summary`
is the decision view of a run, `texts` how values stand in it, `written` folds that a model writes; `recount` is a run
for people.
"""

from ledgercli.summariser.summary import ALL, BUDGET, HEADS, Asker, Summary, View, Wanted
from ledgercli.summariser.texts import tokens
from ledgercli.summariser.written import check_fold

__all__ = ["ALL", "BUDGET", "HEADS", "Asker", "Summary", "View", "Wanted", "check_fold", "tokens"]
