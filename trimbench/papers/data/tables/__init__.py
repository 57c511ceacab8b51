"""Tables of one's own: how a file or a frame is read, column by column."""
