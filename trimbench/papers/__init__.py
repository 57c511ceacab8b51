"""The reproduction: configurations in, verdicts out. Needs ``trimbench[papers]``; the library does not know of it."""
