"""The framework: reruns what a paper reports, and says of each printed number whether it was reproduced."""
