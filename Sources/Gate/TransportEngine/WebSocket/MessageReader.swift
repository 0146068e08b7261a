internal import Transport

/// Puts messages together from data frames (RFC 6455 section 5.4), or lets their bytes through as they come.
struct MessageReader: Sendable {
  private struct Message: Sendable {
    let isText: Bool
    /// Payload bytes of the frames that have begun.
    var length = 0
    var bytes: [UInt8] = []
    var validator = UTF8Validator()
  }

  private let limit: Int
  private var message: Message?
  /// The header of the current frame.
  private var frame: FrameHeader?

  /// - Parameter limit: payload bytes of one message, all fragments together.
  init(limit: Int) { self.limit = limit }

  /// A data frame begins.
  mutating func begin(_ header: FrameHeader) throws(WebSocketFault) {
    if header.opcode == .continuation {
      if message == nil { throw .strayContinuation }
    } else {
      if message != nil { throw .interruptedMessage }
      message = Message(isText: header.opcode == .text)
    }
    frame = header
    // Refused by what the header says: nothing too long is ever collected.
    guard header.payloadLength <= limit - (message?.length ?? 0) else { throw .tooBig(limit: limit) }
    message?.length += header.payloadLength
  }

  /// Payload of the current frame, as it came, of which `offset` bytes have gone before.
  mutating func append(_ payload: UnsafeRawBufferPointer, offset: Int) throws(WebSocketFault) {
    guard var message = self.message.take() else { return }
    let start = message.bytes.count
    message.bytes.append(contentsOf: payload)
    let mask = frame?.mask
    let isValid = message.bytes.withUnsafeMutableBytes { bytes in
      let fresh = UnsafeMutableRawBufferPointer(rebasing: bytes[start...])
      mask?.apply(to: fresh, offset: offset)
      return !message.isText || fresh.withMemoryRebound(to: UInt8.self) { message.validator.consume(.init($0)) }
    }
    guard isValid else { throw .notUTF8 }
    self.message = message
  }

  /// What has been appended since the last call, and is thereby handed over: the bytes do not wait for the message's
  /// end.
  mutating func takeBytes() -> [UInt8] {
    defer { message?.bytes = [] }
    return message?.bytes ?? []
  }

  /// The current frame ends: gives the message if it was the last one.
  mutating func end() throws(WebSocketFault) -> WebSocketMessage? {
    guard frame?.isFinal == true, let message else { return nil }
    if message.isText && !message.validator.isComplete { throw .notUTF8 }
    self.message = nil
    return message.isText ? .text(String(decoding: message.bytes, as: UTF8.self)) : .binary(message.bytes)
  }
}
