"""What every room uses: errors, progress, resources, versions, rounding. It knows nothing of
privacy.
"""
