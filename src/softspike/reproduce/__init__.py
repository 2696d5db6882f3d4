"""The paper's linear study, one command per table or figure; nothing is imported until a command runs."""
