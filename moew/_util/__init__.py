"""What all rooms share: randomness, states, threads, fingerprints, progress, margins, colours."""
