"""Model files and checkpoints on disk: what they hold, how they are written and read."""
