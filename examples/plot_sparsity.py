"""Choosing the sparsity: what each further active feature buys, beside principal components and matching pursuit."""

import matplotlib.pyplot as plt
import torch

from softspike import SparseCoder
from softspike.data import photograph_patches
from softspike.metric import baselines

STEPS = 600
COUNTS = (3, 6, 12, 24)

X, unseen = photograph_patches(20_000, 8_000, size=8)
curves = {"softspike": [], "OMP, same dictionary": [], "principal components": []}
for count in COUNTS:
    coder = SparseCoder(128, n_active=count, max_steps=STEPS, random_state=0).fit(X)
    found = coder.transform(unseen).nnz / len(unseen)
    rivals = baselines(coder.coder_, coder.standardiser_(torch.from_numpy(unseen)), found)
    for name, value in zip(curves, (coder.score(unseen), rivals.omp, rivals.pca), strict=True):
        curves[name].append(value)
    print(f"asked for {count}, found {found:.2f} active: explained variance {coder.score(unseen):.3f}")

# The count asked for is met by itself, so the knee of this curve is all there is to choose.
for (name, values), style in zip(curves.items(), ("o-", "s--", "^:"), strict=True):
    plt.plot(COUNTS, values, style, label=name)
plt.xlabel("active features per patch")
plt.ylabel("explained variance of unseen patches")
plt.legend()
plt.show()
