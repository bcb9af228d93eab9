"""What turns docs/ and the docstrings into the pages of `make site`."""
