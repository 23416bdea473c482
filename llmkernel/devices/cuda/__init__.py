"""NVIDIA GPUs through CuPy's RawModule (NVRTC)."""
