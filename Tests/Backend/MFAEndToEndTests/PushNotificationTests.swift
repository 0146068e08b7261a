import ByteCoding
import Crypto
import Foundation
import GateProcesses
import MFADomain
import MFAFixtures
import SimulatedDevice
import TestSupport
import Testing

@Suite("A push notification wakes a closed app", .serialized, .timeLimit(.minutes(5)))
struct PushNotificationTests {
  /// Calls `body` with a gate, a backend and Apple's service.
  private func serving(
    _ body: (BackendBehindGate, _ apns: PushServer) async throws -> Void
  ) async throws {
    try await PushServer.with(.apns) { apns in
      try await Places.withTemporaryFolder { folder in
        let file = folder + "/push.yaml"
        try ("version: 1\npush:\n" + apns.configuration).write(toFile: file, atomically: true, encoding: .utf8)
        try await BackendBehindGate.serving(options: ["-c", file]) { try await body($0, apns) }
      }
    }
  }

  /// Enrols `device` in the account of `first`, and signs in.
  private func link(_ device: RegisteredDevice, to first: RegisteredDevice, token: String) async throws -> String {
    let code = try await first.call("POST", "/api/v1/mfa/link", [:], token: token)
    var body = try #require(device.phone.enrolment().members)
    body["linkCode"] = code["linkCode"] ?? nil
    let enrolled = try await device.call("POST", "/api/v1/mfa/enroll", .object(body))
    #expect(enrolled.status == 200, "\(enrolled.text)")
    let challenge = try await device.call("POST", "/api/v1/auth/initiate", device.phone.naming)
    let answer = try await device.call("POST", "/api/v1/auth/verify-signature", device.proof(of: challenge.body))
    return try #require(answer["token"]?.text, "\(answer.text)")
  }

  private func answer(_ entry: JSONValue?, by phone: TestPhone, number: Int) throws -> JSONValue {
    let bytes = PushChallenge.signedBytes(
      id: try #require(UUID(uuidString: entry?["pushId"]?.text ?? "")),
      userID: try #require(UUID(uuidString: entry?["userId"]?.text ?? "")),
      nonce: try #require(Base64.decode(entry?["nonce"]?.text ?? "")), approves: true, number: number)
    return [
      "pushId": entry?["pushId"] ?? nil, "approve": true, "number": .number(Double(number)),
      "signature": .string(try phone.key.signature(for: Data(bytes)).derRepresentation.base64EncodedString()),
    ]
  }

  @Test("the app is closed, Apple's service gets the id of the push, and the app fetches and approves it by its socket")
  func approve() async throws {
    try await serving { servers, apns in
      let closed = try await servers.device("closed")
      let closedToken = try await closed.signIn()
      let registered = try await closed.call(
        "POST", "/api/v1/auth/push/address", ["token": .string(PushNotification.deviceToken)], token: closedToken)
      #expect(registered.status == 200 && registered["active"] == true, "\(registered.text)")

      let asking = try await servers.device("asking")
      let askingToken = try await link(asking, to: closed, token: closedToken)
      let started = try await asking.call("POST", "/api/v1/auth/push/start", [:], token: askingToken)
      #expect(started.status == 200, "\(started.text)")

      let notification = try await apns.requests(1)[0]
      #expect(notification["status"] == 200, "\(notification)")
      #expect(notification["payload"]?["push"] == started["pushId"])
      #expect(notification["path"]?.text?.hasSuffix(PushNotification.deviceToken) == true)
      let text = notification.encoded
      for secret in [closedToken, askingToken, "testuser", "192.0.2", "\"number\""] {
        #expect(!text.contains(secret), "\(secret)")
      }

      // The app was woken: it opens its socket and gets the push there.
      let socket = try closed.connect()
      defer { socket.process.kill() }
      _ = try await socket.call(1, "session.attach", ["token": .string(closedToken)])
      let line = try await socket.process.output.first("the push") { $0.contains("push.challenge") }
      let entry = try JSONValue(Data(line.utf8))["params"]
      #expect(entry?["pushId"] == notification["payload"]?["push"])
      let number = try #require(started["number"]?.int)
      let answered = try await socket.call(2, "push.answer", answer(entry, by: closed.phone, number: number))
      #expect(answered["result"]?["state"] == "approved", "\(answered)")
      let state = try await asking.call(
        "GET", "/api/v1/auth/push/\(started["pushId"]?.text ?? "")", token: askingToken)
      #expect(state["state"] == "approved" && state["token"]?.text?.isEmpty == false, "\(state.text)")
    }
  }

  @Test("a service that hangs or refuses neither delays nor fails the sign-in, and an address that it disowns is gone")
  func outages() async throws {
    try await serving { servers, apns in
      let closed = try await servers.device("closed")
      let closedToken = try await closed.signIn()
      _ = try await closed.call(
        "POST", "/api/v1/auth/push/address", ["token": .string(PushNotification.deviceToken)], token: closedToken)
      let asking = try await servers.device("asking")
      let askingToken = try await link(asking, to: closed, token: closedToken)
      try await apns.command(["hang": true])
      let first = try await asking.call("POST", "/api/v1/auth/push/start", [:], token: askingToken)
      #expect(first.status == 200, "\(first.text)")
      #expect(try await apns.requests(1)[0]["hung"] == true)
      try await apns.answer(410, ["reason": "Unregistered", "timestamp": 4_000_000_000_000])
      let second = try await asking.call("POST", "/api/v1/auth/push/start", [:], token: askingToken)
      #expect(second.status == 200, "\(second.text)")
      _ = try await servers.backend.process.errors.first("the removed address") { $0.contains("message unregistered") }
      let count = try await apns.requests().count
      let third = try await asking.call("POST", "/api/v1/auth/push/start", [:], token: askingToken)
      #expect(third.status == 200, "\(third.text)")
      // Nothing more is sent but the repetition of the notification that hung, which is to the same address.
      let later = try await apns.requests().dropFirst(count).filter { $0["payload"]?["push"] == third["pushId"] }
      #expect(later.isEmpty)
    }
  }
}
