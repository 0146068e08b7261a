internal import NIOCore
internal import NIOWebSocket

/// A rule of RFC 6455 that a client's frame breaks, and that NIO's decoder does not check.
enum FrameFault: Error {
  case malformed
  case notUTF8
}

/// Fails the channel at the first frame that RFC 6455 does not allow, and passes no frame after it.
///
/// NIO checks the lengths and the fragments of control frames, but no other rule.
final class FrameRules: ChannelInboundHandler {
  typealias InboundIn = WebSocketFrame
  typealias InboundOut = WebSocketFrame

  private var hasFailed = false

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !hasFailed else { return }
    guard let fault = Self.fault(of: Self.unwrapInboundIn(data)) else {
      context.fireChannelRead(data)
      return
    }
    hasFailed = true
    context.fireErrorCaught(fault)
  }

  static func fault(of frame: WebSocketFrame) -> FrameFault? {
    // Section 5.1: a client masks its frames. Section 5.2: no extension was agreed on that uses the reserved bits.
    guard frame.maskKey != nil, !frame.rsv1, !frame.rsv2, !frame.rsv3 else { return .malformed }
    switch frame.opcode {
    case .continuation, .text, .binary, .ping, .pong: return nil
    case .connectionClose: return fault(ofClose: frame.unmaskedData)
    default: return .malformed
    }
  }

  /// Sections 5.5.1 and 7.4: a close frame has no payload, or a code that may be sent and a reason in UTF-8.
  private static func fault(ofClose payload: ByteBuffer) -> FrameFault? {
    guard payload.readableBytes > 0 else { return nil }
    guard let code: UInt16 = payload.getInteger(at: payload.readerIndex) else { return .malformed }
    switch code {
    case 1000...1003, 1007...1014, 3000...4999: break
    default: return .malformed
    }
    return String(validating: payload.readableBytesView.dropFirst(2), as: UTF8.self) == nil ? .notUTF8 : nil
  }
}
