public import MFADomain

/// Somebody who takes messages to people.
public protocol MessageProvider: Sendable {
  /// Hands one message over; it has arrived there when this returns.
  func deliver(_ message: OutgoingMessage) async throws(DeliveryFailure)
}

/// Why a message was not taken.
public struct DeliveryFailure: Error, Sendable, Hashable {
  /// For the log: without code and address.
  public let reason: String
  /// Whether another attempt may go better.
  public let isTemporary: Bool

  public init(reason: String, isTemporary: Bool) {
    self.reason = reason
    self.isTemporary = isTemporary
  }
}

/// What a message says.
struct MessageText {
  let message: OutgoingMessage
  /// Whom autofill fills the code in for.
  let domain: String

  static let subject = "Your verification code"

  /// The last line binds the code to its domain, for autofill.
  var body: String {
    "Your OTP is \(message.code)\n\n@\(domain) #\(message.code)"
  }
}
