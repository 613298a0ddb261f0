"""Published networks as facts: nodes, links with lengths and capacities, traffic; and where to draw them."""
