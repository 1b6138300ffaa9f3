"""The search for the settings of a model, and the folds of rows that it compares them on."""
