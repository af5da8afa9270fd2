"""Helpers that all rooms share: seeds, states, threads, progress, margins, colours, signals,
folders of rows, worker processes."""
