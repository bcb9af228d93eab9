"""Small networks with a CRF on top, and the scripts that train them."""
