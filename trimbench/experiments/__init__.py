"""The experiments of the papers: one module per paper, one class per table or figure."""
