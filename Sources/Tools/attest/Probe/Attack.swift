internal import AttestClient
internal import ByteCoding
internal import Commands
internal import TransportEngine

/// An attempt to pass the gate without permission, or to make the gate and a server behind it parse the same bytes
/// differently.
struct Attack: Sendable {
  enum Group: String, Sendable, CaseIterable {
    case credentials, registration, tokens, identity, head, path, smuggling, upgrade
  }

  let group: Group
  let name: String
  /// The statuses that say that it failed.
  let expected: [Int]
  /// The code that says why it failed; `nil` if any code says so.
  let code: String?
  /// Whether a device is needed that the gate knows.
  let needsDevice: Bool
  let run: @Sendable (Prober) async throws(Failure) -> Reply

  init(
    _ group: Group, _ name: String, _ expected: [Int], code: String? = nil, needsDevice: Bool = false,
    run: @escaping @Sendable (Prober) async throws(Failure) -> Reply
  ) {
    self.group = group
    self.name = name
    self.expected = expected
    self.code = code
    self.needsDevice = needsDevice
    self.run = run
  }

  /// The attacks of devices of a platform, without those of `tokens`, which need an audience.
  static func all(on platform: Platform) -> [Attack] {
    let own =
      switch platform {
      case .ios: credentials(on: .ios) + assertions + registrations + attestations + encodedAttestations
      case .android: credentials(on: .android) + keyProofs + registrations + chains + encodedChains
      }
    return own + encodedProofs + identities + heads + paths + smuggling + upgrades
  }
}

/// The gate's reply to an attack.
struct Reply: Sendable, Hashable {
  /// The outcome if there was no answer.
  enum Silence: String, Sendable, Hashable {
    /// The connection was closed without an answer.
    case closed
    /// No answer arrived in time.
    case mute = "no answer"
    /// The answer is not HTTP/1.
    case garbled = "not HTTP"
  }

  /// `nil` if there was no answer: see `silence`.
  let status: Int?
  /// `nil` if there was an answer.
  let silence: Silence?
  /// Of `X-Attest-Error`.
  let code: String?
  /// The number of answers on the connection.
  let answers: Int
  /// Information that the answer must not reveal; `nil` if there is none.
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

  /// Whether the gate was too busy for the request, which proves nothing. Only some 503 answers mean that.
  var isBusy: Bool { status == 429 || status == 503 && code == "overloaded" }

  /// The reply of a gate that is too busy.
  static let busy = Reply(RawAnswer(bytes: Array("HTTP/1.1 429 Too Many Requests\r\n\r\n".utf8)))

  var text: String {
    let status = status.map { status in code.map { "\(status) \($0)" } ?? "\(status)" }
    return [status, silence?.rawValue, answers > 1 ? "\(answers) answers" : nil, leak].compactMap(\.self)
      .joined(separator: ", ")
  }
}
