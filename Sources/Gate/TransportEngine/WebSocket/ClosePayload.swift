internal import Transport

/// The payload of a Close frame (RFC 6455 section 5.5.1).
struct ClosePayload: Sendable, Hashable {
  /// `nil` for a frame without a payload.
  let code: CloseCode?
  let reason: String

  init(_ code: CloseCode?, reason: String = "") {
    self.code = code
    self.reason = code == nil ? "" : reason
  }
}

/// Why the payload of a Close frame is invalid.
enum ClosePayloadError: String, Error, Sendable, CaseIterable {
  case length = "a Close frame has one byte of payload"
  case code = "a Close frame carries a code that may not be sent"
  case reason = "the reason in a Close frame is not UTF-8"

  /// The close code to answer with.
  var closeCode: CloseCode {
    switch self {
    case .length, .code: .protocolError
    case .reason: .invalidPayload
    }
  }
}

extension ClosePayload {
  /// Decodes the unmasked payload of a Close frame.
  init(decoding payload: [UInt8]) throws(ClosePayloadError) {
    guard !payload.isEmpty else {
      self.init(nil)
      return
    }
    guard payload.count >= 2 else { throw .length }
    let code = CloseCode(UInt16(payload[0]) << 8 | UInt16(payload[1]))
    guard code.maySend else { throw .code }
    var validator = UTF8Validator()
    let isText = payload.withUnsafeBufferPointer { validator.consume(.init(rebasing: $0[2...])) }
    guard isText, validator.isComplete else { throw .reason }
    self.init(code, reason: String(decoding: payload[2...], as: UTF8.self))
  }

  /// The encoded payload, at most 125 bytes: a longer reason is truncated between two characters.
  var encoded: [UInt8] {
    guard let code else { return [] }
    var bytes = [UInt8(code.rawValue >> 8), UInt8(code.rawValue & 0xFF)]
    for scalar in reason.unicodeScalars {
      guard bytes.count + UTF8.width(scalar) <= FrameHeader.maxControlPayload else { break }
      bytes.append(contentsOf: UTF8.encode(scalar).map(Array.init) ?? [])
    }
    return bytes
  }
}

extension CloseCode {
  /// Whether a Close frame may carry this code: the codes that RFC 6455 section 7.4.1 and the IANA registry allow in
  /// a frame, and the ranges for libraries (3000 to 3999) and private use (4000 to 4999).
  var maySend: Bool {
    switch rawValue {
    case 1000...1003, 1007...1014, 3000...4999: true
    default: false
    }
  }
}
