internal import ByteCoding
internal import Foundation
public import Wire

/// The gate's answer to a request that it did not grant.
public struct GateRefusal: Error, Sendable, Hashable {
  /// The name of the header field that carries the code; the body is a text for people.
  public static let codeHeader = "X-Attest-Error"

  /// The HTTP status.
  public let status: Int
  /// The gate's code; `nil` if the sender is not a gate, or a gate with a code that this library does not know.
  public let code: GateRefusalCode?
  /// The code as the sender wrote it; `nil` if there was none.
  public let codeText: String?
  /// The reply's text, to be shown to a person: at most 500 characters, with U+FFFD for each control or format
  /// character.
  public let text: String
  /// The gate's name for the request, to be found in its log.
  public let requestID: String?
  /// How long to wait before the next attempt, from the field `Retry-After` in seconds (RFC 9110 section 10.2.3), at
  /// most a day; `nil` without the field, and for its form with a date, which no gate sends.
  public let retryAfter: Duration?

  /// Creates a refusal, for tests of an app.
  public init(
    status: Int, code: GateRefusalCode?, text: String = "", requestID: String? = nil, retryAfter: Duration? = nil
  ) {
    self.status = status
    self.retryAfter = retryAfter
    self.code = code
    codeText = code?.rawValue
    self.text = text
    self.requestID = requestID
  }

  /// Reads the refusal from any answer other than the expected one, that of a refused upgrade included.
  ///
  /// The sender is not known to be a gate, so no part of the refusal can steer a terminal that it is written to.
  public init(_ response: HTTPResponse) {
    let text = Self.description(in: response.body) ?? String(decoding: response.body, as: UTF8.self)
    status = response.status
    codeText = response.value(of: Self.codeHeader).map(TerminalText.printable)
    code = codeText.flatMap(GateRefusalCode.init)
    self.text = TerminalText.printable(
      String(text.prefix(500).drop(while: \.isWhitespace).trimmingSuffix(while: \.isWhitespace)))
    requestID = response.value(of: "X-Request-Id").map(TerminalText.printable)
    retryAfter = response.value(of: "Retry-After").flatMap(Self.wait)
  }
}

extension GateRefusal {
  /// The text of a refusal in JSON: that of OAuth at the token endpoint (RFC 6749 section 5.2), or the gate's own.
  private static func description(in body: [UInt8]) -> String? {
    struct Members: Decodable {
      let error: String
      let error_description: String?
    }
    guard body.first == UInt8(ascii: "{"), body.count <= 4096,
      let members = try? JSONDecoder().decode(Members.self, from: Data(body))
    else { return nil }
    return members.error_description ?? members.error
  }

  private static let longestWait = 86_400

  /// Reads 1 to 10 decimal digits of seconds.
  private static func wait(_ text: String) -> Duration? {
    guard (1...10).contains(text.utf8.count), text.utf8.allSatisfy((UInt8(ascii: "0")...UInt8(ascii: "9")).contains),
      let seconds = Int(text)
    else { return nil }
    return .seconds(min(seconds, longestWait))
  }

  /// Whether the server behind the gate gave this answer, and the gate passed it on. The gate's own refusals have a
  /// code, it removes the field `X-Attest-Error` from other answers, and it names the request in each.
  public var isFromUpstream: Bool { codeText == nil && requestID != nil }

  /// The next step for the app. It follows from the code. Without a known code it follows from the status: a client
  /// may retry later after 408, 429 and 5xx.
  public var advice: GateRefusalCode.Advice {
    if let code { return code.definition.advice }
    return switch status {
    case 408, 429, 500...599: .retryLater
    case 400...499: .fixRequest
    default: .stop
    }
  }
}

extension GateRefusal {
  /// A sentence about the answer to a request that needed an admission, with the name of the server that gave it.
  var sentence: String {
    if isFromUpstream { return "the server behind the gate answered \(self)" }
    return codeText == nil ? "the answer is not a gate's: \(self)" : "the gate refused: \(self)"
  }
}

extension GateRefusal: CustomStringConvertible {
  public var description: String {
    let reason = text.isEmpty ? "no reason given" : text
    return "\(status)" + (codeText.map { " \($0)" } ?? "") + ": \(reason)"
  }
}

extension Substring {
  fileprivate func trimmingSuffix(while predicate: (Character) -> Bool) -> Substring {
    var rest = self
    while let last = rest.last, predicate(last) { rest.removeLast() }
    return rest
  }
}
