"""Helpers that all rooms share: seeds, states, threads, fingerprints, progress, margins, colours."""
