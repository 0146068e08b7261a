public import ByteCoding

/// What holds and what does not, rule by rule, of something that was to be verified, and what could be read of it.
///
/// The rules are the verifier's own, in its order. Where a verifier stops at the first that is broken, all are tried
/// here, as far as they can be.
public struct Explanation: Sendable, Hashable {
  public enum Outcome: String, Sendable, Hashable {
    case holds
    case broken
    /// What the rule is about could not be read, or there was nothing to compare it with.
    case notChecked = "not_checked"
  }

  public struct Step: Sendable, Hashable {
    /// The word for the rule in logs: a rejection's `step`.
    public let name: String
    public let outcome: Outcome
    /// What the rule says; if it is broken, how.
    public let detail: String
  }

  /// Something that was read, whether it is true or not.
  public struct Field: Sendable, Hashable {
    public let name: String
    public let value: Value

    init(_ name: String, _ value: Value) {
      self.name = name
      self.value = value
    }
  }

  public indirect enum Value: Sendable, Hashable {
    case text(String)
    case number(Int)
    case instant(Timestamp)
    case fields([Field])
  }

  public internal(set) var steps: [Step] = []
  public internal(set) var fields: [Field] = []

  /// Whether no rule is broken: whether the verifier would have accepted. What cannot be read breaks a rule.
  public var holds: Bool { !steps.isEmpty && firstBroken == nil }

  /// The first rule that is broken.
  public var firstBroken: Step? { steps.first { $0.outcome == .broken } }
}

extension Explanation {
  /// Records what became of a rule: `rejection` is `nil` if it holds.
  mutating func record(_ name: String, rule: String, rejection: (some CustomStringConvertible)?) {
    let outcome: Outcome = rejection == nil ? .holds : .broken
    steps.append(Step(name: name, outcome: outcome, detail: rejection?.description ?? rule))
  }

  mutating func skip(_ name: String, rule: String) {
    steps.append(Step(name: name, outcome: .notChecked, detail: rule))
  }
}

extension Explanation.Field {
  static func hex(_ name: String, _ bytes: [UInt8]) -> Self { Self(name, .text(Hex.encode(bytes))) }
  static func base64(_ name: String, _ bytes: [UInt8]) -> Self { Self(name, .text(Base64.encode(bytes))) }
}
