"""A plan held against the scenario, the catalog and the equations, by code that shares nothing else with its maker."""
