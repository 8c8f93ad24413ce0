"""Why a verdict is what it is: which rules said so, from what, and what would have let the call pass.

From the ground up: `comparisons`, `situations` and `plausible` take a question apart; `rulewise`, `provenance` and
`related` say what decided, where it came from and what nobody read; `looking`, `candidates` and `smallest` search what
would have changed the verdict; `accounts` is the answer and `explaining` gives it for a step of a ledger.
"""
