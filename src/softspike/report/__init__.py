"""9  run folders → progress, tables, pictures."""
