internal import NIOCore
internal import NIOHTTPTypes

/// Limits the time that a request body may take, counted from the end of its header. A slow client is never idle, so
/// an idle timeout does not stop it.
///
/// After the limit, the reader of the body gets `Passed`, and the connection is closed after a short time for the
/// response. The time of the response itself is not limited.
final class RequestBodyDeadline: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPRequestPart
  typealias InboundOut = HTTPRequestPart

  struct Passed: Error {}

  /// The time for sending the response before the connection is closed.
  private static let lingeringClose = TimeAmount.seconds(2)

  private let limit: TimeAmount
  private var timer: Scheduled<Void>?

  init(_ limit: Duration) { self.limit = TimeAmount(limit) }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head:
      let this = NIOLoopBound((self, context), eventLoop: context.eventLoop)
      timer = context.eventLoop.scheduleTask(in: limit) {
        let (handler, context) = this.value
        handler.pass(context)
      }
    case .body: break
    case .end: cancel()
    }
    context.fireChannelRead(data)
  }

  func channelInactive(context: ChannelHandlerContext) {
    cancel()
    context.fireChannelInactive()
  }

  func handlerRemoved(context: ChannelHandlerContext) { cancel() }

  private func pass(_ context: ChannelHandlerContext) {
    timer = nil
    context.fireErrorCaught(Passed())
    let channel = context.channel
    context.eventLoop.scheduleTask(in: Self.lingeringClose) { channel.close(promise: nil) }
  }

  private func cancel() {
    timer?.cancel()
    timer = nil
  }
}
