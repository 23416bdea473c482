"""What a process that runs untrusted code may still ask of the operating system (docs/adr/0008)."""
