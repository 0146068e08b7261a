internal import Locking
internal import NIOCore

/// Stops reading a connection that sends more than its request may have.
final class ByteBudget: ChannelInboundHandler, Sendable {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  struct Exceeded: Error {}

  private let rest: LockedValue<Int>

  init(_ bytes: Int) { rest = LockedValue(bytes) }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let count = unwrapInboundIn(data).readableBytes
    let (before, after) = rest.withLock { rest in
      defer { rest = max(-1, rest - count) }
      return (rest, rest - count)
    }
    if after >= 0 { return context.fireChannelRead(data) }
    // Once: further bytes are discarded.
    if before >= 0 { context.fireErrorCaught(Exceeded()) }
  }
}
