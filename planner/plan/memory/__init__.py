"""What `plan memory` and `plan models` answer."""
