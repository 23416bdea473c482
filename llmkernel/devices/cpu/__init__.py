"""CUDA C++ compiled for the host: real results, labelled emulation."""
