"""Tests of the models that releases keep."""
