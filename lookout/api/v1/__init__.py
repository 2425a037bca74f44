"""Our REST API, `/api/v1`: one module a resource, with its shapes and its endpoints."""
