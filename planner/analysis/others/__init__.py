"""Other plans than the cheapest: different decisions, nearly as good ones, those that stay."""
