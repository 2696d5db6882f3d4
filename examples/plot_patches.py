"""Features of natural images: 256 of them, 10 % active, learned from whitened photograph patches."""

import matplotlib.pyplot as plt
import numpy as np

from softspike import SparseCoder
from softspike.data import photograph_patches

STEPS = 1500

X, unseen = photograph_patches(40_000, 8_000, size=16)
coder = SparseCoder(256, sparsity=0.10, max_steps=STEPS, random_state=0).fit(X)
codes = coder.transform(unseen)
print(f"{codes.nnz / len(unseen):.1f} of 256 features active, explained variance {coder.score(unseen):.3f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5.5))

# The most used features first: localised, oriented edges. Each is scaled by its own largest value, zero is mid-grey.
usage = np.asarray((codes != 0).mean(axis=0)).ravel()
coder.plot_components(image_shape=(16, 16), order=np.argsort(-usage), ax=left)
left.set_title("256 features")

# A few unseen patches, what their codes make of them, and what is left.
patches, rebuilt = unseen[::350], coder.inverse_transform(codes[::350])
rows = [np.hstack(part.reshape(-1, 16, 16)) for part in (patches, rebuilt, patches - rebuilt)]
right.imshow(np.vstack(rows), cmap="gray", vmin=-3, vmax=3)
right.set_title("patches, reconstructions, residuals")
right.set_axis_off()
plt.show()
