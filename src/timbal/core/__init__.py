"""The rules, as functions of values: no I/O, no clock, no randomness."""
