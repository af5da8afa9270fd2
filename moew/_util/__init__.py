"""Helpers that all rooms share: seeds, states, threads, fingerprints, progress, margins, colours, signals,
folders of rows, worker processes."""
