"""How far the simulator is from real stacks: a grid of networks, each run on both sides, and the errors.

grid          networks and their scenario files
runner        runs them, keeps what is finished
measures      figures of a cell's runs, errors between two sides
shape         how alike two courses of a window are
causes        what explains large errors, as data
page, charts  the page of the docs, and figures
"""
