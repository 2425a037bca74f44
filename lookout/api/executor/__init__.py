"""What agents ask and tell: heartbeat, work, reports. Only with the token of their executor."""
