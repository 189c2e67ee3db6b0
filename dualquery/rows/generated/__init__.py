"""Rows that are made up: tables of nobody, computed bit by bit when they are asked for."""
