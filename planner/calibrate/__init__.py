"""Constants of the analytic tier, fitted to measured rows."""
