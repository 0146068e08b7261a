internal import ByteCoding
internal import NIOCore
internal import NIOHTTP1

/// Checks what NIO does not check of the first request of a connection, or drops without an answer.
///
/// - An upgrade to anything but `websocket`, in HTTP/1.0, or without the `Connection` option, is ignored: the request is
///   an ordinary one (RFC 9110 section 7.8).
/// - The opening handshake of a WebSocket has one key of 16 bytes and version 13 (RFC 6455 section 4.2.1).
///
/// Removes itself after the head: only the first request can upgrade.
final class OpeningHandshake: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias InboundOut = HTTPServerRequestPart

  /// Answers the request and closes the connection.
  private let refuse: (HTTPRequestHead, OperationInputError) -> Void
  private var isRefused = false

  init(refuse: @escaping (HTTPRequestHead, OperationInputError) -> Void) { self.refuse = refuse }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !isRefused else { return }
    guard case .head(var head) = Self.unwrapInboundIn(data) else { return context.fireChannelRead(data) }
    if !Self.asksForWebSocket(head) {
      head.headers.remove(name: "Upgrade")
    } else if let fault = Self.fault(of: head) {
      isRefused = true
      return refuse(head, fault)
    }
    context.fireChannelRead(Self.wrapInboundOut(.head(head)))
    context.pipeline.syncOperations.removeHandler(self, promise: nil)
  }

  private static func asksForWebSocket(_ head: HTTPRequestHead) -> Bool {
    func names(_ field: String, _ element: String) -> Bool {
      head.headers[canonicalForm: field].contains { $0.utf8.lazy.map(\.lowercasedASCII).elementsEqual(element.utf8) }
    }
    let isCurrent = head.version.major == 1 && head.version.minor == 1
    return isCurrent && names("Connection", "upgrade") && names("Upgrade", "websocket")
  }

  private static func fault(of head: HTTPRequestHead) -> OperationInputError? {
    let (versions, keys) = (head.headers["Sec-WebSocket-Version"], head.headers["Sec-WebSocket-Key"])
    guard versions == ["13"] else { return .socketVersion }
    guard keys.count == 1, let key = keys.first, Base64.decode(key)?.count == 16 else { return .socketKey }
    return nil
  }
}
