"""What a user trains, saves and loads."""
