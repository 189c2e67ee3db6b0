"""What a finished release answers: questions, tables, pictures, new records."""
