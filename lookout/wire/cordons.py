"""What can be asked of places where jobs wait and run: to start nothing new, or again; why nothing starts there."""

from typing import Any

from lookout.wire.connection import Connection
from lookout.wire.segments import segment
from lookout.wire.views import Executor, Queue, QueueWaiting


class Cordons:
    """The part of the client that closes and opens. Each call said twice changes nothing."""

    _connection: Connection

    def cordon_queue(self, name: str, *, cordoned: bool = True, reason: str = "") -> Queue:
        """Stop starting jobs of a queue, or with `cordoned=False` resume. Raises NotFound."""
        return self._put(Queue, f"queues/{segment(name)}/cordon", cordoned=cordoned, reason=reason)

    def queue_waiting(self, name: str) -> QueueWaiting:
        """Why jobs of a queue wait: each reason with how many there are. Raises NotFound."""
        return self._connection.ask_for(QueueWaiting, "GET", f"queues/{segment(name)}/waiting")

    def cordon_executor(self, name: str, *, cordoned: bool = True, reason: str = "") -> Executor:
        """Have no new run start on an executor, or end that; runs go on. Raises NotFound."""
        return self._put(Executor, f"executors/{segment(name)}/cordon", cordoned=cordoned, reason=reason)

    def cordon_node(self, executor: str, node: str, *, cordoned: bool = True, reason: str = "") -> Executor:
        """Have no new run start on a node, or end that; runs go on. Raises NotFound."""
        path = f"executors/{segment(executor)}/nodes/{segment(node)}/cordon"
        return self._put(Executor, path, cordoned=cordoned, reason=reason)

    def _put[T](self, kind: type[T], path: str, **body: Any) -> T:
        return self._connection.ask_for(kind, "PUT", path, body=body)
