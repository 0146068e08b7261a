import MFAFixtures
import Testing

/// Measures whether the time of an answer reveals which names exist.
@Suite("Time of answers", .serialized)
struct TimingTests {
  struct Question: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let path: String
    /// Whether the known names have backup codes.
    var hasBackupCodes = false
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
    Question(testDescription: "recovery", path: "/mfa/recovery", hasBackupCodes: true) { name, _ in
      ["username": .string(name), "code": "WRONGONE"]
    },
    Question(testDescription: "recovery/stop", path: "/mfa/recovery/stop", hasBackupCodes: true) { name, _ in
      ["username": .string(name), "code": "WRONGONE"]
    },
  ]

  /// The number of pairs of requests in one measurement. A pair has one request for a known name and one for an
  /// unknown name.
  private static let pairs = 200
  /// The limit of the standard score. Without a difference, one of a thousand measurements exceeds it.
  private static let limit = 3.3

  @Test("X-051 the time of an answer does not reveal whether a name exists", arguments: questions)
  func indistinguishable(_ question: Question) async throws {
    try await TestBackend.with { backend in
      for number in 0..<20 {
        let phone = TestPhone(username: "known\(number)")
        if question.hasBackupCodes { _ = try await backend.setUp(phone) } else { try await backend.enrol(phone) }
      }
      for round in 1...2 {
        var z = try await Self.measure(question, backend)
        // A second measurement repeats a real difference, and not an effect of a busy machine.
        if abs(z) >= Self.limit { z = try await Self.measure(question, backend) }
        #expect(abs(z) < Self.limit, "round \(round)")
      }
    }
  }

  /// Returns the standard score of the rank sum (Mann, Whitney and Wilcoxon) of the known names' times.
  private static func measure(_ question: Question, _ backend: TestBackend) async throws -> Double {
    var times: [(duration: Duration, isKnown: Bool)] = []
    for number in 0..<pairs {
      // Each request has its own app instance, and the order alternates, so that neither kind has an advantage.
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
