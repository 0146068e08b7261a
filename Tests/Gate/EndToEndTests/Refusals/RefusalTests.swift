import ByteCoding
import Foundation
import Wire
import TestSupport
import Testing
import Transport

@Suite("Refusals over TLS", .timeLimit(.minutes(10)))
struct RefusalTests {
  @Test("A refusal reports its code to the client and the operator, and reveals no secrets", arguments: RefusalCase.all)
  func refused(refusal: RefusalCase) async throws {
    try await RunningGate.serving(refusal.configuration) { gate in
      for accept in [nil, "text/html, */*", "application/json"] {
        let visitor = try Visitor(gate, accept: accept)
        let response = try await refusal.provoke(visitor)
        try await expect(refusal, in: response, accept: accept)
        try await expect(refusal, inLogOf: gate, of: response)
        expectNoSecrets(of: visitor, in: gate.process.errors.lines)
        if !refusal.knowsAccept { return }
      }
    }
  }

  private func expect(_ refusal: RefusalCase, in response: Response, accept: String?) async throws {
    let body = String(decoding: response.body, as: UTF8.self)
    #expect(response.status == refusal.status, "\(body)")
    #expect(response.headers.values(of: "X-Attest-Error") == [refusal.code])
    #expect(response.headers.first("Cache-Control") == "no-store")
    for (name, value) in refusal.fields { #expect(response.headers.first(named: name) == value) }
    let id = try #require(response.headers.first("X-Request-Id"))
    #expect(id.utf8.count == 32 && Hex.decode(id) != nil)
    if response.headers.first("Content-Type") == "application/json", body.contains("\"error_description\"") {
      // The token endpoint answers as OAuth has it, whatever the client accepts.
      let object = try JSONDecoder().decode([String: String].self, from: Data(response.body))
      #expect(object["error_description"] == refusal.text && object["code"] == refusal.code)
      #expect(object["request_id"] == id && object["error"]?.isEmpty == false && object.count == 4)
    } else if accept == "application/json" && refusal.knowsAccept {
      #expect(response.headers.first("Content-Type") == "application/json")
      let object = try JSONDecoder().decode([String: String].self, from: Data(response.body))
      #expect(object == ["error": refusal.text, "code": refusal.code, "request_id": id])
    } else {
      #expect(response.headers.first("Content-Type") == "text/plain; charset=utf-8")
      #expect(body == refusal.text)
    }
  }

  private func expect(_ refusal: RefusalCase, inLogOf gate: RunningGate, of response: Response) async throws {
    let id = try #require(response.headers.first("X-Request-Id"))
    let entry = try await gate.log.refusal(of: id)
    #expect(entry.code == refusal.code)
    #expect(entry.step == refusal.step)
    #expect(entry.status == refusal.status)
    #expect(gate.process.errors.lines.filter { $0.contains(id) }.count == 1, "one line for each refusal")
  }

  private func expectNoSecrets(of visitor: Visitor, in lines: [String]) {
    for line in lines {
      #expect(LogEntry(line: line) != nil, "not an object: \(line)")
      for secret in visitor.sentSecrets { #expect(!line.contains(secret.prefix(24)), "\(line)") }
    }
  }

  @Test("The refusal of each code is tested")
  func complete() {
    let reached = Set(RefusalCase.all.map(\.code))
    // LimitTests sends too many requests.
    for code in GateRefusalCode.allCases where code != .rateLimited {
      #expect(reached.contains(code.rawValue), "\(code)")
    }
  }

  @Test(
    "A refusal is plain text for clients that do not accept JSON",
    arguments: [
      ("application/json", true), ("Application/JSON; q=0.5", true), ("text/html, application/json", true),
      ("application/json;q=0", false), ("application/*", false), ("application/jsonlines", false), ("*/*", false),
    ])
  func negotiation(accept: String, isJSON: Bool) async throws {
    try await RunningGate.serving { gate in
      let response = try await Visitor(gate, accept: accept).refusal()
      #expect(response.headers.first("Content-Type")?.hasPrefix("application/json") == isJSON)
    }
  }
}

@Suite("Registrations over TLS", .timeLimit(.minutes(10)))
struct RegistrationTests {
  @Test("Each repetition of a registration succeeds with the same answer")
  func idempotent() async throws {
    try await RunningGate.serving { gate in
      let visitor = try Visitor(gate)
      let device = try TestDevice()
      let nonce = try await visitor.challenge()
      let object = try device.attestation(over: nonce)
      var answers: Set<[UInt8]> = []
      for _ in 0..<3 {
        let response = try await visitor.register(device, attestation: object, nonce: nonce)
        #expect(response.status == 200)
        answers.insert(response.body)
      }
      #expect(answers.count == 1)
      // A registered key is never replaced: another attestation of it is refused.
      let other = try await visitor.challenge()
      let second = try await visitor.register(device, attestation: device.attestation(over: other), nonce: other)
      #expect(second.status == 409)
    }
  }

  @Test("Of twenty simultaneous registrations of one key with different nonces, one succeeds")
  func raced() async throws {
    try await RunningGate.serving { gate in
      let visitor = try Visitor(gate)
      let device = try TestDevice()
      let statuses = try await withThrowingTaskGroup(of: Int.self, returning: [Int].self) { group in
        for _ in 0..<20 {
          let nonce = try await visitor.challenge()
          let object = try device.attestation(over: nonce)
          group.addTask { try await visitor.register(device, attestation: object, nonce: nonce).status }
        }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(statuses.filter { $0 == 200 }.count == 1)
      #expect(statuses.filter { $0 == 409 }.count == 19)
    }
  }
}
