"""Pilotfish beside others on the same work: fixtures, subjects, measures, targets, report. `bench/run`."""
