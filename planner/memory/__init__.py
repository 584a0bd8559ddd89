"""What fits on a card: the question of `plan memory`, for training and for serving."""
