"""The agent joins one executor to the scheduler over HTTP; it knows neither Django nor a database."""
