"""Where chunks, vectors and document records are kept; one file each engine."""
