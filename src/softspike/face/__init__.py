"""What `SparseCoder` is made of: its parameters as objects, its trained model, keeping and seeing it."""
