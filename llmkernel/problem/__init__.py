"""What must be computed: reference, signature, workloads."""
