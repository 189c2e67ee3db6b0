"""From cells to bits: `encode` sets bits, `truncation` cuts 1s, `cuts` drops rows, for `blocks`."""
