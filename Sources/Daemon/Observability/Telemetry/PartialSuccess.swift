internal import FoundationEssentials

/// What a collector says that it did not take of a request which it otherwise accepted (OTLP, "Partial Success").
public struct PartialSuccess: Sendable, Hashable {
  /// The number of spans, or of points of metrics.
  public let rejected: Int
  /// The reason in the collector's words; may be empty.
  public let message: String

  /// Reads the JSON of an answer with status 200; `nil` if the collector took everything, or says nothing readable.
  public init?(answer: [UInt8]) {
    guard let answer = try? JSONDecoder().decode(Answer.self, from: Data(answer)), let part = answer.partialSuccess,
      let rejected = part.rejectedSpans?.value ?? part.rejectedDataPoints?.value, rejected > 0
    else { return nil }
    self.rejected = rejected
    message = String(part.errorMessage?.prefix(500) ?? "")
  }

  private struct Answer: Decodable {
    struct Part: Decodable {
      let rejectedSpans: Count?
      let rejectedDataPoints: Count?
      let errorMessage: String?
    }
    let partialSuccess: Part?
  }

  /// A 64-bit integer, which JSON has as a string in OTLP, though some collectors write a number.
  private struct Count: Decodable {
    let value: Int?
    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      value = try (try? container.decode(Int.self)) ?? Int(container.decode(String.self))
    }
  }
}
