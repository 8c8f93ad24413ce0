"""Recorded steps become cases.

Invariants:
* A case holds only what its verdict needs: each fact and past step left out would change the verdict or why it is so.
* What is written is judged first, by the code that judges all cases.
"""
