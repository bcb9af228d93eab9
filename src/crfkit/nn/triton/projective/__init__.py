"""Projective dependency trees."""
