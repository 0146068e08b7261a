import ByteCoding
import Foundation
import GateProcesses
import MFADomain
import MFAFixtures
import SimulatedDevice
import TestSupport
import Testing

@Suite("The backend behind the real gate", .serialized, .timeLimit(.minutes(10)))
struct ThroughTheGateTests {
  @Test("X-001 the backend accepts REST requests with an identity of the real gate, and refuses requests without one")
  func rest() async throws {
    try await BackendBehindGate.serving { servers in
      let device = try await servers.device("phone")
      let enrolled = try await device.call("POST", "/api/v1/mfa/enroll", device.phone.enrolment())
      #expect(enrolled.status == 200, "\(enrolled.text)")
      #expect(enrolled["message"] == "Device enrolled successfully")
      let challenge = try await device.call("POST", "/api/v1/auth/initiate", device.phone.naming)
      #expect(challenge["method"] == "secureEnclave")
      let verified = try await device.call("POST", "/api/v1/auth/verify-signature", device.proof(of: challenge.body))
      #expect(verified["message"] == "Authentication successful")
      let token = try #require(verified["token"]?.text)
      let list = try await device.call("GET", "/api/v1/devices/testuser", token: token)
      #expect(list["devices"]?[0]?["deviceId"] == "phone")
      // Only the user sees the complete number, so the token has passed through the gate.
      let status = try await device.call("GET", "/api/v1/device/phone/status", token: token)
      #expect(status["phoneNumber"] == "+1234567890")

      let direct = try await curl(
        "GET", "http://localhost/api/v1/devices/testuser", token: token, ["--unix-socket", servers.socket])
      #expect(direct.status == 401)
      #expect(direct["code"] == "not_attested")
    }
  }

  @Test("X-002 the backend accepts sockets through the real gate")
  func socket() async throws {
    try await BackendBehindGate.serving { servers in
      let device = try await servers.device("phone")
      let socket = try device.connect()
      defer { socket.process.kill() }
      let enrolled = try await socket.call(1, "mfa.enroll", device.phone.enrolment())
      #expect(enrolled["result"]?["message"] == "Device enrolled successfully")
      let challenge = try await socket.call(2, "auth.initiate", device.phone.naming)["result"] ?? .null
      let verified = try await socket.call(3, "auth.verify-signature", device.proof(of: challenge))
      let token = try #require(verified["result"]?["token"])
      #expect(try await socket.call(4, "session.attach", ["token": token])["result"]?["success"] == true)
      let list = try await socket.call(5, "devices.list", ["username": "testuser"])
      #expect(list["result"]?["devices"]?.count == 1)
    }
  }

  @Test("X-013 the token of one device is refused from another registered device")
  func foreignDevice() async throws {
    try await BackendBehindGate.serving { servers in
      let token = try await servers.device("phone").signIn()
      let other = try await servers.device("other")
      let answer = try await other.call("GET", "/api/v1/devices/testuser", token: token)
      #expect(answer.status == 403)
      #expect(answer["code"] == "device_mismatch")
    }
  }

  @Test("X-042 revocation of a key at the gate closes its socket and prevents new ones")
  func revokedAtTheGate() async throws {
    try await BackendBehindGate.serving { servers in
      let device = try await servers.device("phone")
      let registered = try await device.attest(["register"]).joined()
      let keyID = try #require(registered.split(separator: " ").last.map(String.init))
      let socket = try device.connect()
      defer { socket.process.kill() }
      #expect(try await socket.call(1, "auth.initiate", device.phone.naming)["result"] != nil)
      let revoked = try await ChildProcess.run(
        Places.product("sallyport"), ["keys", "revoke", "-c", servers.gate.folder.path + "/gate.yaml", keyID])
      #expect(revoked.exit == .code(0), "\(revoked.errors)")
      let exit = try await socket.process.exit()
      #expect(exit != .code(0))
      #expect(try await socket.process.errors.all().joined().contains("key was revoked"))
      #expect(try await device.call("POST", "/api/v1/auth/initiate", device.phone.naming).status == 403)
    }
  }

  @Test("X-042 a session that is revoked at the backend closes its socket through the gate with 4403")
  func revokedAtTheBackend() async throws {
    try await BackendBehindGate.serving { servers in
      let device = try await servers.device("phone")
      let token = try await device.signIn()
      let socket = try device.connect()
      defer { socket.process.kill() }
      #expect(
        try await socket.call(1, "session.attach", ["token": .string(token)])["result"]?["success"] == true)
      #expect(try await device.call("POST", "/api/v1/auth/token/revoke", [:], token: token).status == 200)
      _ = try await socket.process.exit(within: .seconds(10))
      #expect(try await socket.process.errors.all().joined().contains("4403"))
    }
  }

  @Test(
    "X-010 the gate does not forward an identity from a client, in any spelling of the header",
    arguments: [["X-Attest-Assertion"], ["x-attest-assertion", "X-ATTEST-ASSERTION"], ["X_Attest_Assertion"]])
  func smuggled(_ names: [String]) async throws {
    try await BackendBehindGate.serving { servers in
      let device = try await servers.device("phone")
      let forged = try await TestGate(clock: .system).assertion(for: .genuine())
      let fields = names.flatMap { ["-H", "\($0): \(forged)"] }
      // The backend refuses two identities in one request, and a forged identity.
      #expect(
        try await device.call("POST", "/api/v1/auth/initiate", device.phone.naming, token: nil, fields).status == 200)
    }
  }

  @Test("A-215 clients reach the backend only by TLS, because the gate serves nothing over plain HTTP")
  func tlsAlone() async throws {
    try await BackendBehindGate.serving { servers in
      let plain = try await curl("GET", "http://localhost:\(servers.gate.port)/api/v1/openapi.json")
      #expect(plain.status != 200)
      #expect(!plain.text.contains("openapi"))
      let device = try await servers.device("phone")
      #expect(try await device.call("GET", "/api/v1/openapi.json")["openapi"] == "3.1.0")
    }
  }
}
