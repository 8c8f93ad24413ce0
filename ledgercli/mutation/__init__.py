"""Packs with a slip in them, and whether their cases would notice.

Invariants:
* A mutant is judged by the code that judges all cases; nothing is run, and no tool's code is imported.
* A mutant is the same as its pack only by proof.
"""
