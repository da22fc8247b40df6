"""What can be run: tools and agents."""
