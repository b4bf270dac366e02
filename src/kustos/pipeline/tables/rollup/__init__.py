"""The roll-up: events summed by day, access and rule, by column over table files or over a frame."""
