internal import Transport

/// Assembles messages from data frames (RFC 6455 section 5.4), or returns their bytes as they arrive.
struct MessageReader: Sendable {
  private struct Message: Sendable {
    let isText: Bool
    /// The payload bytes announced by the frames so far.
    var length = 0
    var bytes: [UInt8] = []
    var validator = UTF8Validator()
  }

  private let limit: Int
  private var message: Message?
  /// The header of the current frame.
  private var frame: FrameHeader?

  /// - Parameter limit: The maximum payload bytes of one message, all fragments together.
  init(limit: Int) { self.limit = limit }

  /// Handles the header of a data frame.
  ///
  /// - Throws: `WebSocketError` for a wrong fragment order or a message that is too long.
  mutating func begin(_ header: FrameHeader) throws(WebSocketError) {
    if header.opcode == .continuation {
      if message == nil { throw .strayContinuation }
    } else {
      if message != nil { throw .interruptedMessage }
      message = Message(isText: header.opcode == .text)
    }
    frame = header
    // Refused on the announced length: nothing too long is ever collected.
    guard header.payloadLength <= limit - (message?.length ?? 0) else { throw .tooBig(limit: limit) }
    message?.length += header.payloadLength
  }

  /// Appends masked payload of the current frame; `offset` bytes of it came before.
  ///
  /// - Throws: `WebSocketError.notUTF8` as soon as a text message is invalid.
  mutating func append(_ payload: UnsafeRawBufferPointer, offset: Int) throws(WebSocketError) {
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

  /// Returns the bytes since the last call and forgets them, without waiting for the end of the message.
  mutating func takeBytes() -> [UInt8] {
    defer { message?.bytes = [] }
    return message?.bytes ?? []
  }

  /// Handles the end of the current frame. Returns the message if it was the last frame.
  ///
  /// - Throws: `WebSocketError.notUTF8` if a text message ends inside a character.
  mutating func end() throws(WebSocketError) -> WebSocketMessage? {
    guard frame?.isFinal == true, let message else { return nil }
    if message.isText && !message.validator.isComplete { throw .notUTF8 }
    self.message = nil
    return message.isText ? .text(String(decoding: message.bytes, as: UTF8.self)) : .binary(message.bytes)
  }
}
