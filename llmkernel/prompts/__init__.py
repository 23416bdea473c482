"""What is sent to a provider: templates, context, redaction and knowledge."""
