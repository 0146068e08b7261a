internal import Locking
internal import NIOCore
internal import NIOWebSocket

/// The outgoing frames of one socket. Adding a frame never waits for the client: a client that does not read must not
/// block the server.
final class OutboundQueue: Sendable {
  struct Full: Error {}

  private struct State {
    /// The size of waiting frames.
    var size = 0
    var isFinished = false
  }

  private let limit: Int
  private let state = LockedValue(State())
  private let frames: AsyncStream<WebSocketFrame>
  private let entrance: AsyncStream<WebSocketFrame>.Continuation
  private let overflows: AsyncStream<Void>
  private let overflowed: AsyncStream<Void>.Continuation

  /// - Parameter limit: the maximum size of waiting frames, in bytes.
  init(limit: Int) {
    self.limit = limit
    (frames, entrance) = AsyncStream.makeStream()
    (overflows, overflowed) = AsyncStream.makeStream()
  }

  /// Adds a frame. After the last frame, it is dropped instead: the client has closed the socket and reads no more.
  ///
  /// - Parameter isLast: whether the frame is the last one, as the answer to a client's Close.
  /// - Throws: `Full` if the frame exceeds the limit. The frame is dropped, and `overflow` returns.
  func add(_ frame: WebSocketFrame, isLast: Bool = false) throws(Full) {
    let fits = state.withLock { state in
      guard !state.isFinished else { return true }
      guard state.size + Self.cost(frame) <= limit else { return false }
      state.size += Self.cost(frame)
      // In the lock, so that no frame of another task gets behind the last one.
      entrance.yield(frame)
      if isLast {
        state.isFinished = true
        entrance.finish()
      }
      return true
    }
    guard fits else {
      overflowed.yield()
      throw Full()
    }
  }

  /// Waits until a frame exceeded the limit, or the task is cancelled.
  func overflow() async { for await _ in overflows { return } }

  /// Accepts no further frames; `write` returns after the last one.
  ///
  /// - Returns: `false` if `add` has added the last frame before.
  func finish() -> Bool {
    state.withLock { state in
      guard !state.isFinished else { return false }
      state.isFinished = true
      entrance.finish()
      return true
    }
  }

  /// Writes frames at the speed of the client, until `finish` or until the channel fails.
  func write(to outbound: NIOAsyncChannelOutboundWriter<WebSocketFrame>) async throws {
    for await frame in frames {
      try await outbound.write(frame)
      state.withLock { $0.size -= Self.cost(frame) }
    }
  }

  /// The size counted for a frame. Even an empty frame needs memory.
  private static func cost(_ frame: WebSocketFrame) -> Int { frame.length + 64 }
}
