import ByteCoding
import Cryptography
import Foundation
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

@Suite("Android devices over TLS", .timeLimit(.minutes(5)))
struct AndroidTests {
  /// Calls `body` with a gate for both platforms in front of an echo server.
  private func serving(
    _ android: AndroidConfiguration = AndroidConfiguration(),
    _ body: (RunningGate, Visitor, EchoBackend) async throws -> Void
  ) async throws {
    let backend = try await EchoBackend()
    try await RunningGate.serving(GateConfiguration(upstream: backend.upstream, android: android)) { gate in
      try await body(gate, try Visitor(gate), backend)
    }
  }

  @Test("A device is registered once, opens sockets, and its proof admits once")
  func socket() async throws {
    try await serving { _, visitor, backend in
      let device = try AndroidDevice()
      let nonce = try await visitor.challenge()
      let chain = try device.chain(over: nonce)
      for _ in 0..<2 { #expect(try await visitor.register(chain: chain, nonce: nonce).status == 200) }
      let headers = try device.headers(over: try await visitor.challenge())
      try await expectEcho(over: try await visitor.open(headers))
      #expect(try await visitor.refusal(of: headers).headers.first("X-Attest-Error") == "nonce_used")
      let seen = try await backend.firstHeaders()
      #expect(seen["x-attest-method"] == "android-key" && seen["x-attest-app"] == AndroidMint.package)
      #expect(seen["x-attest-key-id"] == Base64URL.encode(SHA256.hash(Base64.decode(device.keyID) ?? [])))
      let claims = try Self.claims(of: try #require(seen["x-attest-assertion"]))
      #expect(claims["method"] as? String == "android-key" && claims["env"] as? String == "development")
      #expect(claims["security_level"] as? String == "tee" && claims["boot_state"] as? String == "verified")
      #expect(claims["patch_level"] as? String == "2026-05" && claims["provisioning"] as? String == "factory")
      #expect(claims["counter"] == nil && claims["category"] == nil)
      // A device of iOS at the same gate.
      let ios = try await visitor.registeredDevice()
      try await expectEcho(over: try await visitor.open(ios.headers(over: try await visitor.challenge())))
    }
  }

  private static func claims(of assertion: String) throws -> [String: Any] {
    let parts = assertion.split(separator: ".")
    let payload = try #require(Base64URL.decode(String(parts[1])))
    return try #require(try JSONSerialization.jsonObject(with: Data(payload)) as? [String: Any])
  }

  @Test("Forward auth admits an Android device once for each nonce, with the same identity fields")
  func forwardAuth() async throws {
    try await serving { _, visitor, _ in
      let device = try await visitor.registeredAndroidDevice()
      let headers = try device.headers(over: try await visitor.challenge())
      let first = try await visitor.send("GET", "/attest/verify", headers)
      #expect(first.status == 204 && first.headers.first("X-Attest-Method") == "android-key")
      let second = try await visitor.send("GET", "/attest/verify", headers)
      #expect(second.status == 401 && second.headers.first("X-Attest-Error") == "nonce_used")
      #expect(second.headers.first("X-Attest-Key-Id") == "")
    }
  }

  @Test("Of fifty upgrades with one proof, one is admitted")
  func race() async throws {
    try await serving { _, visitor, _ in
      let device = try await visitor.registeredAndroidDevice()
      let headers = try device.headers(over: try await visitor.challenge())
      let opened = try await withThrowingTaskGroup(of: Bool.self) { group in
        for _ in 0..<50 {
          group.addTask {
            do {
              try await expectEcho(over: try await visitor.open(headers))
              return true
            } catch ClientError.refused(let response) {
              #expect(response.headers.first("X-Attest-Error") == "nonce_used")
              return false
            }
          }
        }
        return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
      }
      #expect(opened == 1)
    }
  }

  @Test("A certificate that enters the status list closes the sockets of its keys within one refresh")
  func revocation() async throws {
    let android = AndroidConfiguration(
      statusList: "{ status_list: \(AndroidConfiguration.listFile), refresh: 1s }",
      list: AndroidConfiguration.list([[0x77, 0x01]]))
    try await serving(android) { gate, visitor, _ in
      let device = try await visitor.registeredAndroidDevice()
      let other = try await visitor.registeredDevice()
      let socket = try await visitor.open(device.headers(over: try await visitor.challenge()))
      let untouched = try await visitor.open(other.headers(over: try await visitor.challenge()))
      try await expectEcho(over: socket)
      let serial = device.mint.certificates[1].serialNumber
      try AndroidConfiguration.list([[0x77, 0x01], serial]).write(
        toFile: "\(gate.folder)/\(AndroidConfiguration.listFile)", atomically: true, encoding: .utf8)
      guard case .ended(let ending) = try await socket.receive() else {
        Issue.record("the socket was not closed")
        return
      }
      #expect(ending.code == 3003)
      let refused = try await visitor.refusal(of: device.headers(over: try await visitor.challenge()))
      #expect(refused.headers.first("X-Attest-Error") == "key_revoked")
      try await expectEcho(over: untouched)
      let next = try await visitor.register(AndroidDevice(), nonce: try await visitor.challenge())
      #expect(next.headers.first("X-Attest-Error") == "attestation_revoked")
    }
  }

  @Test("Monitor mode lets a device with a wrong proof pass, and logs what would be refused")
  func monitor() async throws {
    let backend = try await EchoBackend()
    var configuration = GateConfiguration(upstream: backend.upstream, android: AndroidConfiguration())
    configuration.enforcement = "monitor"
    try await RunningGate.serving(configuration) { gate in
      let visitor = try Visitor(gate)
      let device = try await visitor.registeredAndroidDevice()
      let headers = try device.headers(over: try await visitor.challenge())
      try await expectEcho(over: try await visitor.open(headers))
      try await expectEcho(over: try await visitor.open(headers))
      _ = try await gate.process.errors.first("the refusal") {
        $0.contains("refusal not enforced") && $0.contains("nonce_used")
      }
    }
  }
}
