"""From labelled documents to what a model is derived from."""
