"""What a plan takes for granted, and what its reader should not overlook."""
