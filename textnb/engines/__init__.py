"""Where rows are on a cluster: `textnb.engines.spark` counts and scores them there."""
