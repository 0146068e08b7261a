internal import NIOCore
internal import NIOHTTP1

/// Closes a connection that received bytes that are not HTTP, after its client had time to read the refusal.
///
/// Nothing after such bytes can be parsed. An open connection would keep a descriptor until the idle timeout.
final class MalformedHeadHandler: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = Never

  /// The delay before the close. An immediate close could reset the connection before the client reads the refusal.
  private static let linger = TimeAmount.seconds(2)

  private let isAnswered: Bool

  /// - Parameter isAnswered: whether the refusal is written before the error arrives here. Otherwise the error is
  ///   passed on to a handler that writes it.
  init(isAnswered: Bool) { self.isAnswered = isAnswered }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    guard error is HTTPParserError else { return context.fireErrorCaught(error) }
    if isAnswered { context.close(mode: .output, promise: nil) } else { context.fireErrorCaught(error) }
    let channel = context.channel
    context.eventLoop.scheduleTask(in: Self.linger) { channel.close(promise: nil) }
  }
}
