public import ByteCoding
internal import Locking
internal import Logging

/// The results of the messages of one queue since the start of the process.
public struct DeliveryFigures: Sendable, Hashable {
  /// Accepted by the provider.
  public internal(set) var sent: UInt64 = 0
  /// Not delivered: refused, expired, dropped or lost.
  public internal(set) var failed: UInt64 = 0
  /// Why the last one of `failed` was not delivered, as the log has it.
  public internal(set) var lastFailure: String?
  public internal(set) var lastFailureAt: Timestamp?
}

/// Counts the results of messages.
final class DeliveryTally: Sendable {
  private let counted = LockedValue(DeliveryFigures())
  /// The maximum characters of a reason. Servers choose some of them.
  private static let mostCharacters = 200

  var figures: DeliveryFigures { counted.withLock(\.self) }

  /// - Parameters:
  ///   - outcome: The word of the outcome, for a failure without a reason.
  ///   - metadata: The fields of the log line, of which `reason` is kept.
  func count(sent isSent: Bool, _ outcome: String, _ metadata: Logger.Metadata, at now: Timestamp) {
    counted.withLock { figures in
      guard !isSent else { return figures.sent &+= 1 }
      figures.failed &+= 1
      let reason = metadata["reason"].map { "\($0)" } ?? outcome
      (figures.lastFailure, figures.lastFailureAt) = (String(reason.unicodeScalars.prefix(Self.mostCharacters)), now)
    }
  }
}
