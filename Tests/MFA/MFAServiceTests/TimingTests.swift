import MFAFixtures
import Testing

/// Whether the time of an answer tells who is known.
@Suite("The time of answers", .serialized)
struct TimingTests {
  struct Question: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let path: String
    /// Whether the known names have codes on paper.
    var hasPaper = false
    let body: @Sendable (_ username: String, _ number: Int) -> JSONValue
  }

  static let questions = [
    Question(testDescription: "initiate", path: "/auth/initiate") { name, number in
      ["username": .string(name), "deviceId": .string("unknown-\(number)")]
    },
    Question(testDescription: "verify-signature", path: "/auth/verify-signature") { name, number in
      [
        "username": .string(name), "deviceId": .string("unknown-\(number)"),
        "challengeId": "00000000-0000-4000-8000-000000000000", "signature": "MAYCAQECAQE=",
      ]
    },
    Question(testDescription: "request-otp", path: "/auth/request-otp") { name, _ in
      ["username": .string(name), "phoneNumber": "+1999999999"]
    },
    Question(testDescription: "verify-otp", path: "/auth/verify-otp") { name, _ in
      ["username": .string(name), "otp": "000000"]
    },
    Question(testDescription: "recovery", path: "/mfa/recovery", hasPaper: true) { name, _ in
      ["username": .string(name), "code": "WRONGONE"]
    },
    Question(testDescription: "recovery/stop", path: "/mfa/recovery/stop", hasPaper: true) { name, _ in
      ["username": .string(name), "code": "WRONGONE"]
    },
  ]

  /// Pairs of questions in one measurement: about a name that is known, and about one that is not.
  private static let pairs = 300
  /// Of a thousand measurements of what does not differ, one is beyond.
  private static let limit = 3.3

  @Test("X-051 the time of an answer does not tell a known name from an unknown one", arguments: questions)
  func indistinguishable(_ question: Question) async throws {
    try await TestBackend.with { backend in
      for number in 0..<20 {
        let phone = TestPhone(username: "known\(number)")
        if question.hasPaper { _ = try await backend.setUp(phone) } else { try await backend.enrol(phone) }
      }
      for round in 1...2 {
        var z = try await Self.measure(question, backend)
        // What really differs does so again; what a busy machine did does not.
        if abs(z) >= Self.limit { z = try await Self.measure(question, backend) }
        #expect(abs(z) < Self.limit, "round \(round)")
      }
    }
  }

  /// The standard score of the rank sum (Mann, Whitney and Wilcoxon) of the known names' times among all.
  private static func measure(_ question: Question, _ backend: TestBackend) async throws -> Double {
    var times: [(duration: Duration, isKnown: Bool)] = []
    for number in 0..<pairs {
      // Each pair by an app instance of its own, and the order changes, so that neither profits from the other.
      let order = number.isMultiple(of: 2) ? [true, false] : [false, true]
      for isKnown in order {
        let name = (isKnown ? "known" : "other") + "\(number % 20)"
        let app = AppInstance.genuine()
        let assertion = try await backend.gate.assertion(for: app)
        let text = question.body(name, number).encoded
        let start = ContinuousClock.now
        _ = try await backend.send("POST", "/api/v1" + question.path, text: text, assertion: assertion)
        times.append((ContinuousClock.now - start, isKnown))
      }
    }
    let ranked = times.sorted { $0.duration < $1.duration }.enumerated()
    let sum = ranked.reduce(0.0) { $0 + ($1.element.isKnown ? Double($1.offset + 1) : 0) }
    let count = Double(pairs)
    let mean = count * (2 * count + 1) / 2
    let deviation = (count * count * (2 * count + 1) / 12).squareRoot()
    return (sum - mean) / deviation
  }
}
