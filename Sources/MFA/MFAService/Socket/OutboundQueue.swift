internal import Locking
internal import NIOCore
internal import NIOWebSocket

/// The frames of one socket that its client has not taken yet. Adding one never waits for the client: what the server
/// reports about a session must not depend on a client that does not read.
final class OutboundQueue: Sendable {
  struct Full: Error {}

  private let limit: Int
  private let size = LockedValue(0)
  private let frames: AsyncStream<WebSocketFrame>
  private let entrance: AsyncStream<WebSocketFrame>.Continuation
  private let overflows: AsyncStream<Void>
  private let overflowed: AsyncStream<Void>.Continuation

  /// - Parameter limit: bytes that may wait.
  init(limit: Int) {
    self.limit = limit
    (frames, entrance) = AsyncStream.makeStream()
    (overflows, overflowed) = AsyncStream.makeStream()
  }

  /// Adds a frame.
  ///
  /// - Throws: `Full` if it is one too many; `overflow` returns then, and the frame is not kept.
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

  /// Waits until a frame did not fit, or the task is cancelled.
  func overflow() async { for await _ in overflows { return } }

  /// No frame comes any more: `write` ends with the last one.
  func finish() { entrance.finish() }

  /// Writes frames as fast as the client takes them, until `finish` or until the channel fails.
  func write(to outbound: NIOAsyncChannelOutboundWriter<WebSocketFrame>) async throws {
    for await frame in frames {
      try await outbound.write(frame)
      size.withLock { $0 -= Self.cost(frame) }
    }
  }

  /// A frame without content costs memory as well.
  private static func cost(_ frame: WebSocketFrame) -> Int { frame.length + 64 }
}
