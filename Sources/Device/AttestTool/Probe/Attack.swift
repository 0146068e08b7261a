internal import AttestClient
internal import ByteCoding
internal import TransportEngine

/// One way of trying to get past a gate, or of having it and a server behind it read the same bytes differently.
struct Attack: Sendable {
  enum Group: String, Sendable, CaseIterable {
    case credentials, registration, identity, head, path, smuggling, upgrade
  }

  let group: Group
  let name: String
  /// The statuses that say that it failed.
  let expected: [Int]
  /// Whether a device is needed that the gate knows.
  let needsDevice: Bool
  let run: @Sendable (Prober) async throws(Failure) -> Reply

  init(
    _ group: Group, _ name: String, _ expected: [Int], needsDevice: Bool = false,
    run: @escaping @Sendable (Prober) async throws(Failure) -> Reply
  ) {
    self.group = group
    self.name = name
    self.expected = expected
    self.needsDevice = needsDevice
    self.run = run
  }

  static let all: [Attack] =
    credentials + registrations + identities + heads + paths + smuggling + upgrades
}

/// What a gate says to an attack.
struct Reply: Sendable, Hashable {
  /// What there was in place of an answer.
  enum Silence: String, Sendable, Hashable {
    /// The connection was closed, and nothing said.
    case closed
    /// Nothing was said for as long as was waited.
    case mute = "no answer"
    /// What was said is no HTTP/1.
    case garbled = "not HTTP"
  }

  /// `nil` if there was no answer: see `silence`.
  let status: Int?
  /// `nil` if there was an answer.
  let silence: Silence?
  /// Of `X-Attest-Error`.
  let code: String?
  /// How many answers came on the connection.
  let answers: Int
  /// What the answer gives away that it must not; `nil` for nothing.
  var leak: String?

  init(_ answer: RawAnswer) {
    let text = String(decoding: answer.bytes, as: UTF8.self)
    let lines = text.split(separator: "\r\n", omittingEmptySubsequences: false)
    status = lines.first?.prefixMatch(of: #/HTTP/1\.[0-9] ([1-9][0-9][0-9])(?![0-9])/#).flatMap { Int($0.1) }
    silence =
      switch status {
      case .some: nil
      case nil where !answer.bytes.isEmpty: .garbled
      case nil: answer.isUnfinished ? .mute : .closed
      }
    code =
      lines.dropFirst().prefix { !$0.isEmpty }.lazy
      .compactMap { line -> String? in
        let parts = line.split(separator: ":", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "x-attest-error" else { return nil }
        let value = parts[1].drop { $0 == " " }
        return value.isEmpty ? nil : TerminalText.printable(String(value))
      }.first
    // Anywhere: a body need not end with its line.
    answers = text.matches(of: #/HTTP/1\.[0-9] [1-5][0-9][0-9](?![0-9])/#).count
  }

  /// Whether the gate had no time for the request: that proves nothing. Of 503 only some do.
  var isBusy: Bool { status == 429 || status == 503 && code == "overloaded" }

  /// What a gate says that is too busy.
  static let busy = Reply(RawAnswer(bytes: Array("HTTP/1.1 429 Too Many Requests\r\n\r\n".utf8)))

  var text: String {
    let status = status.map { status in code.map { "\(status) \($0)" } ?? "\(status)" }
    return [status, silence?.rawValue, answers > 1 ? "\(answers) answers" : nil, leak].compactMap(\.self)
      .joined(separator: ", ")
  }
}
