/// The result of an attack.
struct Finding: Sendable, Encodable {
  enum Verdict: String, Sendable, Encodable {
    /// Refused, as it should be.
    case held
    /// Refused, otherwise than it should be.
    case differs
    /// It worked.
    case through
    /// The gate was too busy, its answer cannot be parsed, or it kept the connection without an answer. None of these
    /// proves anything.
    case unclear
  }

  let group: String
  let attack: String
  let expected: String
  let seen: String
  let verdict: Verdict

  init(_ attack: Attack, _ reply: Reply) {
    group = attack.group.rawValue
    self.attack = attack.name
    expected =
      attack.expected.map(String.init).joined(separator: " or ") + (attack.code.map { " \($0)" } ?? "")
    seen = reply.text
    verdict = Self.verdict(of: attack, reply)
  }

  private static func verdict(of attack: Attack, _ reply: Reply) -> Verdict {
    // Bytes after a refused request must never be processed, whatever the first answer was.
    if reply.answers > 1 || reply.leak != nil { return .through }
    switch reply.status {
    case nil: return reply.silence == .closed ? .held : .unclear
    case let status? where attack.expected.contains(status):
      return attack.code == nil || attack.code == reply.code ? .held : .differs
    // Too busy.
    case 429, 503: return .unclear
    // The gate passed the request on to the backend.
    case 502, 504: return .through
    case let status?: return (400..<600).contains(status) ? .differs : .through
    }
  }
}
