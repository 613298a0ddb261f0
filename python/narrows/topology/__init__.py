"""Facts about published networks: nodes and their positions, links with lengths and capacities, traffic."""
