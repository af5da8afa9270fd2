"""The experiments of the paper, each one file and one command."""
