"""Recipes: one file per table or figure, each run by `python -m experiments.<name>`."""
