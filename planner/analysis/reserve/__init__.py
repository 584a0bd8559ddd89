"""Reserve or rent: what commitments cost and save, and what they cost when things turn out otherwise."""
