"""The experiments of the papers: one package per paper, one module per table or figure."""
