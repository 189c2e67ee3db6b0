"""Other forms of queries: sums of conjunctions, products, cuboids, Fourier coefficients."""
