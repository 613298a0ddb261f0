"""The vm backend: the kernel backend inside a distribution's kernel, in virtual time.

`package` unpacks a kernel package, `closure` finds the files that the backend needs in the guest, and
`archive` packs them. `machine` boots them once in QEMU, and `image` saves the running guest. Each run
resumes the saved guest, and gives it the plan in a file that `guest` can read without waiting.
"""
