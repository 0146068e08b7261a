public import ByteCoding
internal import Cryptography

/// The fields that name and sign a message (Standard Webhooks 1.0.0). Each secret makes a signature of its own, so that
/// a secret can be replaced while the receiver still knows only the old one.
public enum WebhookSignature {
  /// Returns the fields of an attempt to deliver `message`.
  ///
  /// - Parameter now: The time of the attempt, which receivers compare with theirs to refuse old attempts.
  public static func fields(
    for message: WebhookMessage, secrets: [[UInt8]], at now: Timestamp
  ) -> [(name: String, value: String)] {
    let seconds = "\(now.seconds)"
    let signed = Array("\(message.id).\(seconds).".utf8) + message.body
    let signatures = secrets.map { "v1,\(Base64.encode(HMACSHA256.authenticate(signed, key: $0)))" }
    return [
      ("Webhook-Id", message.id), ("Webhook-Timestamp", seconds),
      ("Webhook-Signature", signatures.joined(separator: " ")),
    ]
  }
}
