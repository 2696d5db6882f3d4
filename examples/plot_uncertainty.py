"""Uncertainty of a code: intervals and probabilities, on data whose true codes are known."""

import matplotlib.pyplot as plt
import numpy as np

from softspike import SparseCoder
from softspike.data import synthetic
from softspike.metric import match
from softspike.metric.recovery import absolute_cosine

STEPS = 2000

# 3 of 48 sources on, in 32 dimensions, with a little noise.
data = synthetic(8_000, n_features=32, n_sources=48, n_active=3, seed=0, noise=0.1)
X, truth = data.x.numpy(), data.codes.numpy()
coder = SparseCoder(48, n_active=3, positive=True, max_steps=STEPS, random_state=0).fit(X[:6_000])
codes, std = coder.transform(X[6_000:], return_std=True)
codes, probability = codes.toarray(), coder.activation_probability(X[6_000:])

# Features have no order of their own: match them to the sources, and bring the sources to the features' scale.
atoms = data.dictionary.numpy()
found, source = match(absolute_cosine(coder.coder_.generator.atoms, data.dictionary))
scale = np.linalg.norm(atoms[:, source], axis=0) / np.linalg.norm(coder.components_[found], axis=1)
codes, std, probability, truth = codes[:, found], std[:, found], probability[:, found], truth[6_000:, source] * scale

active = codes != 0
covered = np.abs(codes - truth)[active] <= 1.645 * std[active]
print(f"90 % intervals cover {covered.mean():.1%} of the active coefficients")

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5))
row = np.argmax(active.sum(1) == 3)
left.errorbar(np.arange(48), codes[row], 1.645 * std[row] * active[row], fmt="o", label="code, 90 % interval")
left.plot(np.flatnonzero(truth[row]), truth[row][truth[row] != 0], "kx", markersize=9, label="truth")
left.set(xlabel="feature", ylabel="coefficient", title="one input")
left.legend()

edges = np.linspace(0, 1, 11)
middle = np.clip(np.digitize(probability, edges) - 1, 0, 9)
happened = [np.mean(truth[middle == b] != 0) if (middle == b).any() else np.nan for b in range(10)]
right.plot([0, 1], [0, 1], "k:", label="perfect")
right.plot((edges[1:] + edges[:-1]) / 2, happened, "o-", label="measured")
right.set(xlabel="stated probability", ylabel="share truly active", title="all inputs")
right.legend()
plt.show()
