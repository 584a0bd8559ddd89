"""Price lists of other tools, read into offers: every row is taken or listed with the reason why not."""
