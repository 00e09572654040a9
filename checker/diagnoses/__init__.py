"""The words of every diagnosis, one module a family; `checker.findings` assembles them into the catalogue."""
