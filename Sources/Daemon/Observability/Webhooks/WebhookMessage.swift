public import ByteCoding
internal import Cryptography

/// A message about something that happened, for a receiver of the operator's: the form and the signature are those of
/// the Standard Webhooks specification 1.0.0.
public struct WebhookMessage: Sendable, Hashable {
  /// Unique for the event, not for the attempt: a receiver that has seen it drops the message. Letters, digits, `_`
  /// and `-`.
  public let id: String
  /// When the event happened.
  public let instant: Timestamp
  /// `{"type": …, "timestamp": …, "data": …}`.
  public let body: [UInt8]

  /// - Parameters:
  ///   - type: Words with periods between them, such as `key.registered`.
  ///   - data: What a receiver may know, with the names in the order of the alphabet.
  ///   - id: `nil` for a random one.
  public init(_ type: String, _ data: some Encodable & Sendable, at instant: Timestamp, id: String? = nil) {
    self.id = id ?? "msg_" + Hex.encode(SecureRandom.bytes(16))
    self.instant = instant
    body = Array(
      """
      {"type":\(JSONText.quote(type)),"timestamp":\(JSONText.quote("\(instant.wholeSecond)")),"data":\(JSONText.encoding(data))}
      """.utf8)
  }

  /// A message as its file has it.
  init(id: String, instant: Timestamp, body: [UInt8]) {
    (self.id, self.instant, self.body) = (id, instant, body)
  }
}
