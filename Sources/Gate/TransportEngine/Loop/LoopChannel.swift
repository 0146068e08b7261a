/// A member of a loop that is not a gate session, such as a listener or a connection that the
/// engine opened for itself.
///
/// Only the loop's thread calls it.
class LoopChannel {
  final var token = SlotToken(slot: 0, generation: 0)

  /// Handles readiness of the socket. `events` are the flags of epoll.
  func ready(_ events: UInt32, in loop: EventLoop) {}

  /// Handles an expired deadline.
  func expired(in loop: EventLoop) {}

  /// Leaves the stopping loop and removes the timer from the wheel.
  func abandon(in loop: EventLoop) { loop.remove(self) }
}
