package import AsyncHTTPClient
internal import NIOCore
internal import NIOHPACK
internal import NIOHTTP1
internal import NIOHTTP2

/// Ends a connection whose answers AsyncHTTPClient cannot take: it drops a status below 200, also one that is none, and
/// traps at the body or the end of an answer without another head.
private final class AnswerOrder: ChannelInboundHandler {
  typealias InboundIn = HTTPClientResponsePart
  typealias InboundOut = HTTPClientResponsePart

  /// Whether the final head of the answer has come. Heads before it are informational (RFC 9110 section 15.2).
  private var hasHead = false
  private var isBroken = false

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !isBroken else { return }
    switch unwrapInboundIn(data) {
    case .head(let head):
      guard head.status.code >= 100 else {
        return end(context, .init(text: "an answer with the status \(head.status.code)"))
      }
      hasHead = hasHead || head.status.code >= 200 || head.status == .switchingProtocols
    case .body:
      guard hasHead else { return end(context, .init(text: "a body without a final status")) }
    case .end:
      guard hasHead else { return end(context, .init(text: "an answer without a final status")) }
      hasHead = false
    }
    context.fireChannelRead(data)
  }

  private func end(_ context: ChannelHandlerContext, _ fault: MalformedAnswer) {
    isBroken = true
    context.fireErrorCaught(fault)
    context.close(promise: nil)
  }
}

/// Ends a stream of HTTP/2 whose `:status` is not three digits: the library traps at a negative one.
private final class StatusForm: ChannelInboundHandler {
  typealias InboundIn = HTTP2Frame.FramePayload
  typealias InboundOut = HTTP2Frame.FramePayload

  private var isBroken = false

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !isBroken else { return }
    if case .headers(let block) = unwrapInboundIn(data), let status = block.headers.first(name: ":status"),
      status.utf8.count != 3 || !status.utf8.allSatisfy({ (0x30...0x39).contains($0) })
    {
      isBroken = true
      context.fireErrorCaught(MalformedAnswer(text: "an answer whose status is not three digits"))
      context.close(promise: nil)
      return
    }
    context.fireChannelRead(data)
  }
}

/// An answer that is no answer of HTTP.
struct MalformedAnswer: Error {
  let text: String
}

extension HTTPClient.Configuration {
  /// What every client of these programs begins with: HTTP/1.1, no redirects, nothing unpacked, and a server that sends
  /// no HTTP ends its connection and not this process.
  package static var strict: Self {
    var configuration = Self(redirectConfiguration: .disallow, decompression: .disabled)
    configuration.httpVersion = .http1Only
    configuration.checkConnections()
    configuration.http2StreamChannelDebugInitializer = { channel in
      channel.eventLoop.submit { try channel.pipeline.syncOperations.addHandler(StatusForm(), position: .first) }
        .flatMap { Self.addOrder(to: channel, after: HTTP2FramePayloadToHTTP1ClientCodec.self) }
    }
    return configuration
  }

  /// Calls `check` for each connection, after the handshake and before the first request is written; a failure closes the
  /// connection.
  mutating func checkConnections(
    _ check: @escaping @Sendable (any Channel) -> EventLoopFuture<Void> = { $0.eventLoop.makeSucceededVoidFuture() }
  ) {
    http1_1ConnectionDebugInitializer = { channel in
      check(channel).flatMap { Self.addOrder(to: channel, after: ByteToMessageHandler<HTTPResponseDecoder>.self) }
    }
    http2ConnectionDebugInitializer = check
  }

  /// Adds the check of answers where they leave their decoder.
  private static func addOrder<Decoder: ChannelHandler & SendableMetatype>(
    to channel: any Channel, after decoder: Decoder.Type
  ) -> EventLoopFuture<Void> {
    channel.eventLoop.submit {
      let pipeline = channel.pipeline.syncOperations
      try pipeline.addHandler(AnswerOrder(), position: .after(try pipeline.handler(type: decoder)))
    }
  }
}
