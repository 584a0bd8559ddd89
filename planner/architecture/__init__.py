"""What is run: the shape of a model, its parameters and its FLOPs; 72 presets and any known `config.json`."""
