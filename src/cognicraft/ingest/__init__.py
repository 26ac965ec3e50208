"""Files to documents to chunks to encoded chunks: read, split, contextualize, encode."""
