"""What is the agent told? Random edits of real projects, judged by the language's own command-line checker."""
