"""What feedback does for an agent: see README.md."""
