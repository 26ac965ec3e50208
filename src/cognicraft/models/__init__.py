"""Models that run here or elsewhere: encoders now, each behind `cognicraft.protocols.Embedder`."""
