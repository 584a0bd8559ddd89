"""What a plan says, worked out again without the search and the program."""
