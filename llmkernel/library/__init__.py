"""The kernels that come with the package, written by the project itself, one `.cu` each."""
