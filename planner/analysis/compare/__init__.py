"""Plans beside each other: what changed in the question, in what is rented, in the money, and which change did it."""
