"""Records: everything needed to reproduce a generated kernel without a provider."""
