internal import ByteCoding
internal import Transport

/// The body of a token request: a form with the member `audience` (RFC 6749 section 4.4.2, RFC 8693 section 2.1), or
/// without it with `client_id`, for a client attestation.
///
/// Other members are ignored, as RFC 6749 section 3.2 requires; none may be repeated.
struct TokenRequest: Sendable, Hashable {
  /// The maximum number of bytes of a body.
  static let longest = 4096
  static let mediaType = "application/x-www-form-urlencoded"

  enum Purpose: Sendable, Hashable {
    /// A token for a service.
    case token(audience: String)
    /// An attestation for a client of an authorization server.
    case attestation(clientID: String)
  }

  let purpose: Purpose

  /// Why a body is malformed.
  enum ParseError: Error, Sendable, Hashable {
    /// `Content-Type` names no form.
    case notAForm
    case tooLong(bytes: Int)
    /// A name or a value is not encoded correctly.
    case malformed
    case repeatedMember
    case missingAudience
  }

  init(_ request: Request) throws(ParseError) {
    guard case .once(let type) = request.headers.only("Content-Type"), Self.isForm(type) else { throw .notAForm }
    try self.init(form: request.body)
  }

  init(form: [UInt8]) throws(ParseError) {
    guard form.count <= Self.longest else { throw .tooLong(bytes: form.count) }
    var names: Set<[UInt8]> = []
    var (audience, clientID): ([UInt8], [UInt8]) = ([], [])
    for pair in form.split(separator: UInt8(ascii: "&")) {
      let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      guard let name = Self.decode(parts[0]), let value = Self.decode(parts.count == 2 ? parts[1] : []) else {
        throw .malformed
      }
      guard names.insert(name).inserted else { throw .repeatedMember }
      if name.elementsEqual("audience".utf8) { audience = value }
      if name.elementsEqual("client_id".utf8) { clientID = value }
    }
    guard !audience.isEmpty || !clientID.isEmpty else { throw .missingAudience }
    purpose =
      audience.isEmpty
      ? .attestation(clientID: String(decoding: clientID, as: UTF8.self))
      : .token(audience: String(decoding: audience, as: UTF8.self))
  }

  /// Parameters of the type, such as a charset, change nothing: a form is in ASCII.
  private static func isForm(_ type: String) -> Bool {
    let name = type.utf8.prefix { $0 != UInt8(ascii: ";") }.drop { $0 == 0x20 }.prefix { $0 != 0x20 && $0 != 0x09 }
    return name.elementsEqual(mediaType.utf8) { $0.lowercasedASCII == $1 }
  }

  /// Decodes `+` and escapes; `nil` if the result is not UTF-8 or an escape is malformed.
  private static func decode(_ text: ArraySlice<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    var rest = text
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "+"): bytes.append(0x20)
      case UInt8(ascii: "%"):
        let digits = String(decoding: rest.prefix(2), as: UTF8.self)
        guard digits.utf8.count == 2, let value = Hex.decode(digits)?.first else { return nil }
        bytes.append(value)
        rest = rest.dropFirst(2)
      default: bytes.append(byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self).utf8.elementsEqual(bytes) ? bytes : nil
  }
}
