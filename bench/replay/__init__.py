"""Real changes, replayed edit by edit in a living repository: `bench/replay/run --help`."""
