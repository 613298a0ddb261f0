"""The vm backend runs the kernel backend on a distribution's kernel in a guest, in virtual time.

`package` unpacks a kernel package, `closure` finds the files that the backend needs in the guest, and
`archive` packs them. `machine` boots the guest in QEMU, and `image` saves the running guest. These steps
happen only once. Each run resumes the saved guest. The run's plan is in a file that the program `guest` can
read without waiting.
"""
