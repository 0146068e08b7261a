internal import FoundationEssentials

/// What a collector says that it did not take of a request which it otherwise accepted (OTLP, "Partial Success").
public struct PartialSuccess: Sendable, Hashable {
  /// The number of spans, or of points of metrics.
  public let rejected: Int
  /// The reason in the collector's words, at most 500 Unicode scalars; may be empty.
  public let message: String

  /// The most of a message that is kept, in Unicode scalars: a character may have any number of combining marks.
  private static let longestMessage = 500

  /// Reads the body of an answer with status 200; `nil` if the collector took everything, or says nothing readable.
  public init?(answer: [UInt8], in form: OTLPEncoding.Form = .json) {
    switch form {
    case .json: self.init(json: answer)
    case .protobuf: self.init(protobuf: answer)
    }
  }

  /// `ExportTraceServiceResponse` and `ExportMetricsServiceResponse`: field 1 is `partial_success`, with the number in its
  /// field 1 and the message in its field 2.
  private init?(protobuf answer: [UInt8]) {
    var rejected: UInt64 = 0
    var message = ""
    for field in ProtobufReader(answer[...]) where field.number == 1 {
      guard case .bytes(let part) = field.value else { return nil }
      for field in ProtobufReader(part) {
        switch (field.number, field.value) {
        case (1, .integer(let value)): rejected = value
        case (2, .bytes(let text)): message = String(decoding: text, as: UTF8.self)
        default: continue
        }
      }
    }
    // An `int64`: a negative number is none.
    guard let count = Int(exactly: rejected), count > 0 else { return nil }
    self.rejected = count
    self.message = String(message.unicodeScalars.prefix(Self.longestMessage))
  }

  private init?(json answer: [UInt8]) {
    guard let answer = try? JSONDecoder().decode(Answer.self, from: Data(answer)), let part = answer.partialSuccess,
      let rejected = part.rejectedSpans?.value ?? part.rejectedDataPoints?.value, rejected > 0
    else { return nil }
    self.rejected = rejected
    message = String((part.errorMessage ?? "").unicodeScalars.prefix(Self.longestMessage))
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
