internal import ByteCoding

/// The gate's answer to a request that it did not grant.
public struct GateRefusal: Error, Sendable, Hashable {
  /// The name of the header field that carries the code; the body is a text for people.
  public static let codeHeader = "X-Attest-Error"

  public let status: Int
  /// `nil` if what answered is not a gate, or did not say.
  public let code: RefusalCode?
  /// The reply's text, to be shown to a person: at most 500 characters, with U+FFFD for each control or format
  /// character.
  public let text: String
  /// The gate's name for the request, to be found in its log.
  public let requestID: String?

  public init(status: Int, code: RefusalCode?, text: String = "", requestID: String? = nil) {
    self.status = status
    self.code = code
    self.text = text
    self.requestID = requestID
  }

  /// Reads the refusal from any answer other than the expected one, that of a refused upgrade included.
  ///
  /// The sender is not known to be a gate, so no part of the refusal can steer a terminal that it is written to.
  public init(_ response: HTTPResponse) {
    let text = String(decoding: response.body, as: UTF8.self)
    status = response.status
    code = response.value(of: Self.codeHeader).map { RefusalCode(TerminalText.printable($0)) }
    self.text = TerminalText.printable(
      String(text.prefix(500).drop(while: \.isWhitespace).trimmingSuffix(while: \.isWhitespace)))
    requestID = response.value(of: "X-Request-Id").map(TerminalText.printable)
  }
}

extension GateRefusal: CustomStringConvertible {
  public var description: String {
    let reason = text.isEmpty ? "no reason given" : text
    return "\(status)" + (code.map { " \($0.rawValue)" } ?? "") + ": \(reason)"
  }
}

/// A refusal code of the gate. Gates may know more codes than this library does.
public struct RefusalCode: RawRepresentable, Sendable, Hashable {
  public let rawValue: String
  public init(rawValue: String) { self.rawValue = rawValue }
  init(_ text: String) { rawValue = text }

  public static let nonceInvalid = RefusalCode("nonce_invalid")
  public static let nonceExpired = RefusalCode("nonce_expired")
  public static let nonceUsed = RefusalCode("nonce_used")
  public static let counterReplayed = RefusalCode("counter_replayed")
  /// The gate does not know the key, or the signature is not the key's; it does not say which.
  public static let keyRefused = RefusalCode("key_refused")
  public static let keyRevoked = RefusalCode("key_revoked")
  public static let keyExists = RefusalCode("key_exists")

  /// Whether a fresh challenge may be all that was missing.
  public var asksForFreshChallenge: Bool {
    [.nonceInvalid, .nonceExpired, .nonceUsed, .counterReplayed].contains(self)
  }
}

extension Substring {
  fileprivate func trimmingSuffix(while predicate: (Character) -> Bool) -> Substring {
    var rest = self
    while let last = rest.last, predicate(last) { rest.removeLast() }
    return rest
  }
}
