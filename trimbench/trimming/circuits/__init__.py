"""Circuits (SDDs): a network is compiled in a child process, and agreements are computed from the circuit."""
