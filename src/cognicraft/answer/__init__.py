"""Ranked chunks to an answer in the words of the documents."""
