import AttestGate
import GateFixtures
import GateService
import Testing
import Transport

/// Decisions that need no task, because nothing waits.
@Suite struct DecisionAtOnceTests {
  @Test("With enforcement off, a request to a route is decided at once, with the head that a task would make")
  func open() async throws {
    let service = try ServiceBench(GateBench(enforcement: .off))
    let request = Request.upgrade([("X-Attest-App", "spoofed"), ("Cookie", "a=1")])
    guard case .relay(_, let head)? = service.responder.respondAtOnce(to: request, from: ServiceBench.peer),
      case .relay(_, let other) = await service.responder.respond(to: request, from: ServiceBench.peer)
    else {
      Issue.record("not relayed")
      return
    }
    #expect(head == other)
  }

  @Test("A refusal whatever the credentials is decided at once, and anything else is left to respond")
  func enforced() throws {
    let service = try ServiceBench(GateBench())
    func status(_ request: Request) -> Int? {
      guard case .respond(let response)? = service.responder.respondAtOnce(to: request, from: ServiceBench.peer)
      else { return nil }
      return response.status
    }
    #expect(status(.plain("GET", "/")) == 426)
    #expect(status(.plain("GET", "/attest/unknown")) == 404)
    #expect(status(.plain("DELETE", "/attest/challenge")) == 405)
    #expect(status(.upgrade([("Origin", "https://other.example")])) == 403)
    for request in [Request.upgrade(), .plain("GET", "/attest/challenge"), .plain("GET", "/attest/verify")] {
      #expect(service.responder.respondAtOnce(to: request, from: ServiceBench.peer) == nil)
    }
    #expect(service.sessions.count == 0)
  }
}
