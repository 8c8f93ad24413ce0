"""What people and machines are shown: one file a format. Nothing below `cli` prints; these write to a `Screen`."""
