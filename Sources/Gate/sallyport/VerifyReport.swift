internal import ByteCoding
internal import Commands
internal import FoundationEssentials
internal import GateRuntime

/// Formats an explanation as text or as JSON.
struct VerifyReport {
  let kind: String
  /// The time of verification; `nil` if the rules do not depend on time.
  let instant: Timestamp?
  let explanation: Explanation

  var text: String {
    let width = explanation.steps.map(\.name.count).max() ?? 0
    let steps = explanation.steps.map { step in
      "\(Self.mark(step.outcome))  \(Self.padded(step.name, width))  \(TerminalText.printable(step.detail))"
    }
    let verdict = "the \(kind) \(explanation.holds ? "holds" : "does not hold")" + (instant.map { " at \($0)" } ?? "")
    return ([verdict, ""] + steps + Self.lines(explanation.fields)).joined(separator: "\n")
  }

  /// `{"at", "fields", "holds", "kind", "steps": [{"detail", "name", "result"}]}`
  var json: String {
    let steps = explanation.steps.map { step -> JSONValue in
      ["name": .text(step.name), "result": .text(step.outcome.rawValue), "detail": .text(step.detail)]
    }
    var report: [String: JSONValue] = [
      "kind": .text(kind), "holds": .boolean(explanation.holds), "steps": .array(steps),
      "fields": JSONValue(explanation.fields),
    ]
    report["at"] = instant.map { .text($0.description) }
    return JSONText.encoding(JSONValue.object(report), isPretty: true)
  }

  /// Prints the report. Throws the first broken rule, if there is one, with `hint` if the cause is known.
  func conclude(asJSON isJSON: Bool, hint: String? = nil) throws(Failure) {
    Console.print(isJSON ? json : text)
    guard let broken = explanation.firstBroken else { return }
    throw Failure(
      .problems, "the \(kind) is not valid: \(broken.name): \(TerminalText.printable(broken.detail))",
      hint: hint ?? "see the steps above for the other rules")
  }

  private static func mark(_ outcome: Explanation.Outcome) -> String {
    switch outcome {
    case .holds: "ok     "
    case .broken: "BROKEN "
    case .notChecked: "-      "
    }
  }

  private static func padded(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
  }

  private static func lines(_ fields: [Explanation.Field]) -> [String] {
    guard !fields.isEmpty else { return [] }
    let entries = flattened(fields, prefix: "")
    let width = entries.map(\.name.count).max() ?? 0
    return [""] + entries.map { "\(padded($0.name, width))  \($0.value)" }
  }

  private static func flattened(_ fields: [Explanation.Field], prefix: String) -> [(name: String, value: String)] {
    fields.flatMap { field -> [(name: String, value: String)] in
      flattened(field.value, name: prefix + field.name)
    }
  }

  private static func flattened(_ value: Explanation.Value, name: String) -> [(name: String, value: String)] {
    switch value {
    case .text(let text): [(name, TerminalText.printable(text))]
    case .number(let number): [(name, String(number))]
    case .boolean(let truth): [(name, truth ? "true" : "false")]
    case .instant(let instant): [(name, instant.description)]
    case .fields(let fields): flattened(fields, prefix: name + ".")
    case .list(let values): values.enumerated().flatMap { flattened($1, name: "\(name)[\($0)]") }
    }
  }
}

/// A JSON value (RFC 8259).
indirect enum JSONValue: Encodable, ExpressibleByDictionaryLiteral {
  case text(String)
  case number(Int)
  case boolean(Bool)
  case array([JSONValue])
  case object([String: JSONValue])

  init(dictionaryLiteral elements: (String, JSONValue)...) {
    self = .object(Dictionary(elements) { first, _ in first })
  }

  init(_ fields: [Explanation.Field]) {
    self = .object(Dictionary(fields.map { ($0.name, JSONValue($0.value)) }) { first, _ in first })
  }

  private init(_ value: Explanation.Value) {
    self =
      switch value {
      case .text(let text): .text(text)
      case .number(let number): .number(number)
      case .boolean(let truth): .boolean(truth)
      case .list(let values): .array(values.map { JSONValue($0) })
      case .instant(let instant): .text(instant.description)
      case .fields(let fields): JSONValue(fields)
      }
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .text(let text): try container.encode(text)
    case .number(let number): try container.encode(number)
    case .boolean(let truth): try container.encode(truth)
    case .array(let values): try container.encode(values)
    case .object(let members): try container.encode(members)
    }
  }
}
