"""A virtual GPU: Triton compiles for a real chip, numpy runs what it compiled. Knows nothing of katas."""
