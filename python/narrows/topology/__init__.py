"""Published networks as facts: nodes and their positions, links with lengths and capacities, traffic."""
