"""The paper's deep study: Fashion-MNIST and CelebA, a sweep over dimension and one over sparsity."""
