/// A participant of a loop that is not a gate session: a listener, or a connection that the engine opened for itself.
///
/// Only the thread of its loop calls it.
class LoopChannel {
  final var token = SlotToken(slot: 0, generation: 0)

  /// Its socket is ready. `events` is what epoll said.
  func ready(_ events: UInt32, in loop: EventLoop) {}

  /// Its deadline has passed.
  func expired(in loop: EventLoop) {}

  /// The loop stops: the channel leaves it, and takes its timer out of the wheel.
  func abandon(in loop: EventLoop) { loop.remove(self) }
}
