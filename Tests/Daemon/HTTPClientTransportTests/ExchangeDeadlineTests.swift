import Foundation
import Wire
import TestSupport
import Testing

@Suite("A deadline for a whole exchange", .timeLimit(.minutes(1)))
struct ExchangeDeadlineTests {
  private enum Fault: Error { case expired, cancelled, own }

  @Test func `a body that reacts to nothing is not waited for when the time is over`() async throws {
    let (end, begun) = (Watched(false), Watched(false))
    await #expect(throws: Fault.expired) {
      try await ExchangeDeadline.within(
        .seconds(5), expired: Fault.expired, cancelled: .cancelled,
        sleep: { _ in _ = try await begun.wait(for: "the body") { $0 ? true : nil } },
        { () async throws(Fault) in
          begun.update { $0 = true }
          _ = try? await end.wait(for: "the end of the test") { $0 ? true : nil }
        })
    }
    end.update { $0 = true }
  }

  @Test func `the result of a body that ends in time counts, and so does its error`() async throws {
    let value = try await ExchangeDeadline.within(
      .seconds(3600), expired: Fault.expired, cancelled: .cancelled, { () async throws(Fault) in 7 })
    #expect(value == 7)
    await #expect(throws: Fault.own) {
      try await ExchangeDeadline.within(
        .seconds(3600), expired: Fault.expired, cancelled: .cancelled, { () async throws(Fault) in throw .own })
    }
  }

  @Test func `a caller that is cancelled waits no longer, and its body is cancelled`() async throws {
    let (begun, cancelled) = (Watched(false), Watched(false))
    let caller = Task {
      try await ExchangeDeadline.within(
        .seconds(3600), expired: Fault.expired, cancelled: .cancelled,
        { () async throws(Fault) in
          begun.update { $0 = true }
          try? await Task.sleep(for: .seconds(3600))
          cancelled.update { $0 = Task.isCancelled }
        })
    }
    _ = try await begun.wait(for: "the body") { $0 ? true : nil }
    caller.cancel()
    await #expect(throws: Fault.cancelled) { try await caller.value }
    _ = try await cancelled.wait(for: "the end of the body") { $0 ? true : nil }
  }
}
