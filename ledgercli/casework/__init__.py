"""Policies under test: cases are found, prepared, judged, counted and brought up to date.

Invariants:
* A verdict is that of the enforcer which judges runs; nothing is run, and no tool's code is imported.
* What cannot be judged is told as such; it never counts as passed.
"""
