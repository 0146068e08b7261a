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
  /// `nil` if the connection was closed without an answer, or the answer is none.
  let status: Int?
  /// Of `X-Attest-Error`.
  let code: String?
  /// How many answers came on the connection.
  let answers: Int
  /// What the answer gives away that it must not; `nil` for nothing.
  var leak: String?

  /// - Parameter bytes: all that came.
  init(_ bytes: [UInt8]) {
    let text = String(decoding: bytes, as: UTF8.self)
    let lines = text.split(separator: "\r\n", omittingEmptySubsequences: false)
    let words = lines.first?.split(separator: " ") ?? []
    status = words.first == "HTTP/1.1" && words.count > 1 ? Int(words[1]) : nil
    code =
      lines.dropFirst().prefix { !$0.isEmpty }.lazy
      .compactMap { line -> String? in
        let parts = line.split(separator: ":", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "x-attest-error" else { return nil }
        let value = parts[1].drop { $0 == " " }
        return value.isEmpty ? nil : String(value)
      }.first
    // Anywhere: a body need not end with its line.
    answers = text.matches(of: #/HTTP/1\.1 [1-5][0-9][0-9] /#).count
  }

  /// Whether the gate had no time for the request: that proves nothing. Of 503 only some do.
  var isBusy: Bool { status == 429 || status == 503 && code == "overloaded" }

  /// What a gate says that is too busy.
  static let busy = Reply(Array("HTTP/1.1 429 Too Many Requests\r\n\r\n".utf8))

  var text: String {
    guard let status else { return "closed" }
    let answer = code.map { "\(status) \($0)" } ?? "\(status)"
    return [answer, answers > 1 ? "\(answers) answers" : nil, leak].compactMap(\.self).joined(separator: ", ")
  }
}
