import MFAClient
import MFAWire
import Testing

@testable import attest

@Suite("Limits of attempts in the lab")
struct LabPatienceTests {
  private static func refusal(_ code: String, retryAfter: Int?) -> NetworkError {
    .refused(BackendRefusal(status: 429, ErrorBody(message: "", code: code, requestId: "r", retryAfter: retryAfter)))
  }

  @Test("Only the refusal of a limit asks to wait")
  func waits() {
    #expect(LimitedBackend.wait(for: Self.refusal("rate_limited", retryAfter: 12)) == .seconds(12))
    #expect(LimitedBackend.wait(for: Self.refusal("rate_limited", retryAfter: nil)) == .zero)
    #expect(LimitedBackend.wait(for: Self.refusal("account_locked", retryAfter: 12)) == nil)
    #expect(LimitedBackend.wait(for: .malformed(requestID: nil, "")) == nil)
  }

  @Test("A scenario is played again once, after a pause that is short enough, and otherwise the wait is named")
  func pauses() {
    #expect(LabPatience.pause(after: .seconds(12), attempt: 1) == .seconds(12))
    #expect(LabPatience.pause(after: .zero, attempt: 1) == .seconds(1))
    #expect(LabPatience.pause(after: .seconds(12), attempt: 2) == nil)
    #expect(LabPatience.pause(after: .seconds(66), attempt: 1) == nil)
    #expect(LabPatience.pause(after: nil, attempt: 1) == nil)
    #expect(LabPatience.hint(for: .milliseconds(1500)).contains("in 2 s"))
  }
}
