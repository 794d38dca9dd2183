"""What a type checker is to find: one mistake in each line that says so."""

import numpy as np

import hone

x = np.ones((8, 64), np.float32)
hone.tune("softmax", x).tabel()  # wrong: no such method
hone.override("softmax", 3)  # wrong: a kernel has a name
hone.Runtime(stor="none")  # wrong: no such option
hone.policy(None)  # wrong: a policy has a name
kernel: int = hone.decide("softmax", x).kernel  # wrong: a text
hone.kernel("softmax", spaces="a: 1")  # an option of a platform's own: said when it runs
