"""The roll-up: events summed by day, access and rule, by column over table files."""
