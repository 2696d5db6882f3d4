"""What the library promises to survive, tried out: scripts that print their figures. See docs/reliability.md."""
