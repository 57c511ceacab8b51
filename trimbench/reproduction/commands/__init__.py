"""The command ``trimbench``: its words, its tasks, and what the rest of a run will cost."""
