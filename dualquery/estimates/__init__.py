"""What is known of errors: expected errors before a run, intervals of true answers after it."""
