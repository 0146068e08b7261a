/// What came of an attack.
struct Finding: Sendable, Encodable {
  enum Verdict: String, Sendable, Encodable {
    /// Refused, as it should be.
    case held
    /// Refused, otherwise than it should be.
    case differs
    /// It worked.
    case through
    /// The gate was too busy to say, or what it said cannot be read, or it said nothing and kept the connection: none
    /// of these proves anything.
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
    expected = attack.expected.map(String.init).joined(separator: " or ")
    seen = reply.text
    verdict = Self.verdict(of: attack, reply)
  }

  private static func verdict(of attack: Attack, _ reply: Reply) -> Verdict {
    // What stands behind a refused request must not be looked at, whatever was said about that one.
    if reply.answers > 1 || reply.leak != nil { return .through }
    switch reply.status {
    case nil: return reply.silence == .closed ? .held : .unclear
    case let status? where attack.expected.contains(status): return .held
    // Too busy.
    case 429, 503: return .unclear
    // The backend was asked, or even answered.
    case 502, 504: return .through
    case let status?: return (400..<600).contains(status) ? .differs : .through
    }
  }
}
