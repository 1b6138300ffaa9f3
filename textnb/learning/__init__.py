"""From labelled documents to the counts and weights of a model."""
