internal import ByteCoding
public import ConsoleFrame
internal import GateService
public import Transport

/// The way from a console to the admin server of a gate.
public struct GateLink: Sendable {
  /// Sends a request without a body and returns the answer, within one deadline.
  ///
  /// - Throws: `ConsoleFault` if the gate does not answer.
  public typealias Ask = @Sendable (_ method: String, _ target: String) async throws(ConsoleFault) -> Response

  private let ask: Ask
  private let options: [String]

  /// - Parameter options: The options with which commands find the same gate, such as `-c` and a file.
  public init(options: [String] = [], _ ask: @escaping Ask) { (self.options, self.ask) = (options, ask) }

  /// Returns the line of a command for the same gate, to copy.
  ///
  /// - Parameter operand: The last argument, which may begin with a dash.
  func line(_ words: [String], operand: String? = nil) -> String {
    let last = operand.map { $0.hasPrefix("-") ? ["--", $0] : [$0] } ?? []
    return Shown.command(["sallyport"] + words + options + last)
  }

  /// An answer of the gate and its JSON.
  struct Answer<Value: Decodable & Sendable>: Sendable {
    let value: Value
    let json: String
  }

  private struct Refusal: Decodable {
    let error: String
    let hint: String?
  }

  /// Sends a request and decodes the answer.
  func send<Value: Decodable & Sendable>(
    _ method: String, _ target: String, _ type: Value.Type
  ) async throws(ConsoleFault) -> Answer<Value> {
    let response = try await ask(method, target)
    guard (200..<300).contains(response.status) else {
      let refusal = AdminJSON.value(Refusal.self, in: response.body)
      throw ConsoleFault(
        (400..<600).contains(response.status) ? response.status : 502,
        refusal?.error ?? "The gate answered with status \(response.status)", hint: refusal?.hint)
    }
    guard let value = AdminJSON.value(type, in: response.body),
      let json = String(validating: response.body, as: UTF8.self)
    else {
      throw ConsoleFault(
        502, "The gate's answer has an unknown format", hint: "use the sallyport version that the gate runs")
    }
    return Answer(value: value, json: json)
  }

  /// Reads from the gate.
  func get<Value: Decodable & Sendable>(
    _ target: String, _ type: Value.Type
  ) async throws(ConsoleFault) -> Answer<Value> {
    try await send("GET", target, type)
  }
}
