internal import Locking
internal import NIOCore
internal import NIOWebSocket

/// The outgoing frames of one socket. Adding a frame never waits for the client: a client that does not read must not
/// block the server.
final class OutboundQueue: Sendable {
  struct Full: Error {}

  private let limit: Int
  private let size = LockedValue(0)
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

  /// Adds a frame.
  ///
  /// - Throws: `Full` if the frame exceeds the limit. The frame is dropped, and `overflow` returns.
  func add(_ frame: WebSocketFrame) throws(Full) {
    let fits = size.withLock { size in
      guard size + Self.cost(frame) <= limit else { return false }
      size += Self.cost(frame)
      return true
    }
    guard fits else {
      overflowed.yield()
      throw Full()
    }
    entrance.yield(frame)
  }

  /// Waits until a frame exceeded the limit, or the task is cancelled.
  func overflow() async { for await _ in overflows { return } }

  /// Accepts no further frames; `write` returns after the last one.
  func finish() { entrance.finish() }

  /// Writes frames at the speed of the client, until `finish` or until the channel fails.
  func write(to outbound: NIOAsyncChannelOutboundWriter<WebSocketFrame>) async throws {
    for await frame in frames {
      try await outbound.write(frame)
      size.withLock { $0 -= Self.cost(frame) }
    }
  }

  /// The size counted for a frame. Even an empty frame needs memory.
  private static func cost(_ frame: WebSocketFrame) -> Int { frame.length + 64 }
}
