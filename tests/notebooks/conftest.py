from tests.kernel.conftest import jupyter  # noqa: F401 - the fixture that installs the kernel
