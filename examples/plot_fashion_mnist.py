"""Features of Fashion-MNIST: non-negative codes, so that clothes are sums of parts.

python examples/plot_fashion_mnist.py [FOLDER]: the one with train-images-idx3-ubyte.gz in it. On Debian,
apt install dataset-fashion-mnist puts it where it is found without being named.
"""

import gzip
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from softspike import SparseCoder

STEPS = 1500

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "/usr/share/datasets/fashion-mnist")
file = folder / "train-images-idx3-ubyte.gz"
if not file.exists():
    sys.exit(f"{file} does not exist; give the folder that holds it, or apt install dataset-fashion-mnist")
with gzip.open(file) as content:
    images = np.frombuffer(content.read(), np.uint8, offset=16).reshape(-1, 28 * 28)
X, unseen = images[:20_000] / np.float32(255), images[20_000:21_000] / np.float32(255)

# Pixels at the edge never change: they are kept, as constants say nothing wrong.
coder = SparseCoder(
    100, n_active=12, positive=True, constant_features="keep", max_steps=STEPS, random_state=0
).fit(X)  # fmt: skip
codes = coder.transform(unseen)
print(f"{codes.nnz / len(unseen):.1f} of 100 parts active, explained variance {coder.score(unseen):.3f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5.5))
usage = np.asarray((codes != 0).mean(axis=0)).ravel()
coder.plot_components(image_shape=(28, 28), order=np.argsort(-usage), ax=left)
left.set_title("100 parts, the most used first")
rebuilt = coder.inverse_transform(codes[:8])
right.imshow(np.vstack([np.hstack(part.reshape(-1, 28, 28)) for part in (unseen[:8], rebuilt)]), cmap="gray")
right.set_title("images and reconstructions")
right.set_axis_off()
plt.show()
