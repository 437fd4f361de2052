"""Judging many patches of one repository: what each would introduce, and how much it would fix."""
