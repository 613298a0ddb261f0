"""The kernel backend: real TCP stacks in namespaces of this machine.

A run has six steps (a pure step has no side effects):

1. `layout` places the plan's nodes, links and flows (pure).
2. `commands` writes the commands that create them (pure), and `build` runs the commands.
3. `spec` describes the run to the native module.
4. The native module performs the run in real time.
5. `soundness` judges whether other work disturbed the run (pure).
6. `namespaces` removes everything.
"""
