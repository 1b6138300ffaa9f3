"""Which settings a model gets: folds of the rows, and the search over them."""
