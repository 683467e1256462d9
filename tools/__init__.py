"""What builds and checks the book; nothing here is part of the package `llm_internals`."""
