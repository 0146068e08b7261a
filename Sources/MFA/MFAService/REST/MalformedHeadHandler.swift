internal import NIOCore
internal import NIOHTTP1

/// Closes a connection on which something came that is no HTTP, once its client had time to read the refusal.
///
/// Nothing that follows can be read, so an open connection would only hold a descriptor until it has been idle for
/// long.
final class MalformedHeadHandler: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = Never

  /// How long the refusal may take to its client. Closing at once could reset the connection before it is read.
  private static let linger = TimeAmount.seconds(2)

  private let isAnswered: Bool

  /// - Parameter isAnswered: whether the refusal has been written when the error arrives here. Otherwise the error is
  ///   passed on, to a handler that writes it.
  init(isAnswered: Bool) { self.isAnswered = isAnswered }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    guard error is HTTPParserError else { return context.fireErrorCaught(error) }
    if isAnswered { context.close(mode: .output, promise: nil) } else { context.fireErrorCaught(error) }
    let channel = context.channel
    context.eventLoop.scheduleTask(in: Self.linger) { channel.close(promise: nil) }
  }
}
