"""Triton as a second kernel language."""
