internal import FoundationEssentials

/// The way from a console to the admin server of its service.
public struct ConsoleLink: Sendable {
  /// An answer of the admin server.
  public struct Reply: Sendable {
    let status: Int
    let body: [UInt8]

    public init(status: Int, body: [UInt8]) { (self.status, self.body) = (status, body) }
  }

  /// Sends a request without a body and returns the answer, within one deadline.
  ///
  /// - Parameter person: The person at a console over TLS; `nil` on the loopback.
  /// - Throws: `ConsoleFault` if the service does not answer.
  public typealias Ask =
    @Sendable (_ method: String, _ target: String, _ person: String?) async throws(ConsoleFault) -> Reply

  private let ask: Ask
  private let (program, service): (String, String)
  private let variables: [String]
  private let options: Options
  private var person: String?

  /// Returns the options with which the command of `words` finds the same service, such as `-c` and a file. Without
  /// them, a copied command could act on another service.
  public typealias Options = @Sendable (_ words: [String]) -> [String]

  /// - Parameters:
  ///   - program: The name of the command.
  ///   - service: What the program runs, such as `gate`.
  ///   - variables: The environment variables with which commands find the same service, as `NAME=value`.
  public init(
    program: String, service: String, variables: [String] = [], options: @escaping Options, _ ask: @escaping Ask
  ) {
    (self.program, self.service, self.variables, self.options, self.ask) = (program, service, variables, options, ask)
  }

  /// Returns the line of a command for the same service, to copy.
  ///
  /// - Parameter operand: The last argument, which may begin with a dash.
  public func line(_ words: [String], operand: String? = nil) -> String {
    let last = operand.map { $0.hasPrefix("-") ? ["--", $0] : [$0] } ?? []
    let environment = variables.isEmpty ? [] : ["env"] + variables
    return Shown.command(environment + [program] + words + options(words) + last)
  }

  /// Returns the same way for requests of the person who looks at a page.
  public func asked(by viewer: ConsoleViewer) -> ConsoleLink {
    var link = self
    link.person = viewer.person
    return link
  }

  /// An answer of the service and its JSON.
  public struct Answer<Value: Decodable & Sendable>: Sendable {
    public let value: Value
    public let json: String
  }

  private struct Refusal: Decodable {
    let error: String
    let hint: String?
  }

  /// Sends a request and decodes the answer.
  public func send<Value: Decodable & Sendable>(
    _ method: String, _ target: String, _ type: Value.Type
  ) async throws(ConsoleFault) -> Answer<Value> {
    let reply = try await ask(method, target, person)
    guard (200..<300).contains(reply.status) else {
      let refusal = Self.value(Refusal.self, in: reply.body)
      throw ConsoleFault(
        (400..<600).contains(reply.status) ? reply.status : 502,
        refusal?.error ?? "The \(service) answered with status \(reply.status)", hint: refusal?.hint)
    }
    guard let value = Self.value(type, in: reply.body), let json = String(validating: reply.body, as: UTF8.self) else {
      throw ConsoleFault(
        502, "The \(service)'s answer has an unknown format",
        hint: "use the \(program) version that the \(service) runs")
    }
    return Answer(value: value, json: json)
  }

  /// Reads from the service.
  public func get<Value: Decodable & Sendable>(
    _ target: String, _ type: Value.Type
  ) async throws(ConsoleFault) -> Answer<Value> {
    try await send("GET", target, type)
  }

  private static func value<Value: Decodable>(_ type: Value.Type, in bytes: [UInt8]) -> Value? {
    try? JSONDecoder().decode(type, from: Data(bytes))
  }
}
