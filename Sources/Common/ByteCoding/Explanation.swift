/// The result of each rule for what a device sent, and the decoded fields.
///
/// The rules and their order are those of the verifier. The verifier stops at the first broken rule; an explanation
/// tries all of them as far as possible.
public struct Explanation: Sendable, Hashable {
  /// The result of one step.
  public enum Outcome: String, Sendable, Hashable {
    /// The input keeps the rule.
    case holds
    /// The input breaks the rule.
    case broken
    /// The rule's input could not be parsed, or there was no value to compare it with.
    case notChecked = "not_checked"
  }

  /// One rule and its result.
  public struct Step: Sendable, Hashable {
    /// The word for the rule in logs: a rejection's `step`.
    public let name: String
    /// The result of the step.
    public let outcome: Outcome
    /// The text of the rule; if it is broken, the reason.
    public let detail: String
  }

  /// Something that was read, whether it is true or not.
  public struct Field: Sendable, Hashable {
    /// The name of the field in reports.
    public let name: String
    /// The decoded value.
    public let value: Value

    /// Creates a field.
    public init(_ name: String, _ value: Value) {
      self.name = name
      self.value = value
    }
  }

  /// A decoded value, as reports show it.
  public indirect enum Value: Sendable, Hashable {
    /// A text. It may come from the client.
    case text(String)
    /// A whole number.
    case number(Int)
    /// A truth value.
    case boolean(Bool)
    /// Several values.
    case list([Value])
    /// A point in time.
    case instant(Timestamp)
    /// A group of fields.
    case fields([Field])
  }

  /// The steps in the order in which they were checked.
  public private(set) var steps: [Step] = []
  /// The decoded fields, as far as the input could be parsed.
  public var fields: [Field] = []

  /// Creates an explanation without steps, which does not hold.
  public init() {}

  /// Whether the verifier would accept the input: no rule is broken. Input that cannot be parsed breaks a rule.
  public var holds: Bool { !steps.isEmpty && firstBroken == nil }

  /// The first rule that is broken.
  public var firstBroken: Step? { steps.first { $0.outcome == .broken } }
}

extension Explanation {
  /// Records the result of a rule; `rejection` is `nil` if the input keeps it.
  public mutating func record(_ name: String, rule: String, rejection: (some CustomStringConvertible)?) {
    let outcome: Outcome = rejection == nil ? .holds : .broken
    steps.append(Step(name: name, outcome: outcome, detail: rejection?.description ?? rule))
  }

  /// Records a rule that was not checked.
  public mutating func skip(_ name: String, rule: String) {
    steps.append(Step(name: name, outcome: .notChecked, detail: rule))
  }
}

extension Explanation.Field {
  /// A field with bytes in hex.
  public static func hex(_ name: String, _ bytes: [UInt8]) -> Self { Self(name, .text(Hex.encode(bytes))) }
  /// A field with bytes in base64.
  public static func base64(_ name: String, _ bytes: [UInt8]) -> Self { Self(name, .text(Base64.encode(bytes))) }
}
