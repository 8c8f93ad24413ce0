"""Recorded runs judged again: by their own rules (`verifying`, `endings`), by others (`whatif`); many (`surveys`)."""
