"""The kernel backend: real TCP stacks in namespaces of this machine.

A plan is laid out (`layout`, pure), written down as commands (`commands`, pure), made (`build`), run in real
time by the native module (`spec` is what it is told), judged (`soundness`, pure) and unmade (`namespaces`).
"""
