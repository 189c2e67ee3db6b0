"""What all experiments share: runs in parallel that are never done twice, tables, pictures, a page.

An experiment is a module with a `Recipe`: the settings of its runs, a function that does one run,
one that draws the picture, and what is expected. `experiments.harness.runner.run_recipe` does the
rest.
"""
