"""What differs: between two ledgers (`ledgers`), two folders of them (`folders`), two versions of a pack (`packs`).

`outline` reads a ledger into what is compared, `alignment` and `pairing` lay the steps of two side by side, `layers`
says in what a pair differs first, and `differing` takes a pair of values apart.
"""
