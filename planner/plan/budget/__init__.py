"""What a plan costs as a finance partner reads it: by month, by fiscal year, committed against variable."""
