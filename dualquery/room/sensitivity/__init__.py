"""How far counts move between neighbouring tables: proofs, computed."""
