"""What programs build on tasks and actors."""
