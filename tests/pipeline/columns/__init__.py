"""Tables read by column."""
