/// A part of a frame, in wire order: `begin`, any number of `payload`, `end`.
enum FramePiece {
  case begin(FrameHeader)
  /// Payload bytes, still masked. `offset` bytes of the payload came before. They point into the caller's window.
  case payload(UnsafeRawBufferPointer, offset: Int)
  case end
}

/// Finds the frames in bytes that arrive in pieces (RFC 6455 section 5.2). It stores no payload.
struct FrameReader: Sendable {
  private enum State: Sendable {
    case header
    case payload(FrameHeader, received: Int)
  }

  private let allowed: ReservedBits
  private var state = State.header
  /// The beginning of an incomplete header; shorter than 14 bytes.
  private var partial: [UInt8] = []

  /// - Parameter reserved: The bits that negotiated extensions use.
  init(allowing reserved: ReservedBits = []) { allowed = reserved }

  /// Removes the next piece from the front of `window` and returns it. If there is none yet, it consumes
  /// the window and returns `nil`.
  ///
  /// - Throws: `FrameError` for an invalid header.
  mutating func next(_ window: inout UnsafeRawBufferPointer) throws(FrameError) -> FramePiece? {
    switch state {
    case .header:
      guard let header = try nextHeader(&window) else { return nil }
      state = .payload(header, received: 0)
      return .begin(header)
    case .payload(let header, let received) where received == header.payloadLength:
      state = .header
      return .end
    case .payload(let header, let received):
      let payload = window.prefix(header.payloadLength - received)
      if payload.isEmpty { return nil }
      window = UnsafeRawBufferPointer(rebasing: window[payload.endIndex...])
      state = .payload(header, received: received + payload.count)
      return .payload(UnsafeRawBufferPointer(rebasing: payload), offset: received)
    }
  }

  private mutating func nextHeader(_ window: inout UnsafeRawBufferPointer) throws(FrameError) -> FrameHeader? {
    let known = partial.count
    let decoded: FrameDecode
    if known == 0 {
      decoded = FrameHeader.decode(window, allowing: allowed)
    } else {
      partial.append(contentsOf: window.prefix(FrameHeader.maxLength - known))
      let allowed = allowed
      decoded = partial.withUnsafeBytes { FrameHeader.decode($0, allowing: allowed) }
    }
    switch decoded {
    case .fault(let fault):
      throw fault
    case .header(let header):
      window = UnsafeRawBufferPointer(rebasing: window.dropFirst(header.length - known))
      partial.removeAll()
      return header
    case .incomplete:
      if known == 0 { partial.append(contentsOf: window) }
      window = UnsafeRawBufferPointer(rebasing: window.suffix(0))
      return nil
    }
  }
}
