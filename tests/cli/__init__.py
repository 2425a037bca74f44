"""The command line and the Python client: against a small server that speaks the API's shapes, and the real one."""
