"""Files of networks, and networks of other libraries."""
