"""The vm backend: the kernel backend inside a distribution's kernel, in virtual time.

A kernel package is unpacked (`package`), the files that the backend needs there are found (`closure`) and
packed (`archive`); QEMU boots them once (`machine`) and the running guest is saved (`image`). Each run begins
from that saved guest, with its plan in a file that the guest can read without waiting for anything (`guest`).
"""
