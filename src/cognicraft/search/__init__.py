"""Question to ranked chunks: retrieve side by side, fuse, rerank."""
