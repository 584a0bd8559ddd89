"""What a plan costs month by month, for whom, and when money is due."""
