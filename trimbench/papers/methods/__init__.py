"""Methods that several experiments and the study compare."""
