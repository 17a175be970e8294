"""`headwater serve`: a warehouse over HTTP. Only this package knows starlette and uvicorn."""
