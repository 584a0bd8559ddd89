"""Every plan that is best for some limit."""
