import MFADomain
import MFAFixtures
import Testing

@Suite("Devices and their state")
struct DirectoryTests {
  @Test("T-11 A-088 the list of devices has the documented fields, and times in UTC with Z")
  func devices() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone(deviceID: "device-1")
      let token = try await backend.token(phone)
      let answer = try await backend.get("/devices/testuser", as: phone.app, token: token)
      #expect(answer.status == 200)
      #expect(
        answer.json == [
          "devices": [
            [
              "deviceId": "device-1", "deviceModel": "iPhone 15 Pro", "method": "secureEnclave",
              "enrolledAt": "2026-01-01T00:00:00Z", "lastUsed": "2026-01-01T00:00:00Z",
              "attested": true,
            ]
          ]
        ])
    }
  }

  @Test("A-088 another user's list gets 403, and a request without a token 401")
  func foreignDevices() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      try await backend.enrol(TestPhone(username: "other"))
      #expect(try await backend.get("/devices/other", as: phone.app, token: token).status == 403)
      #expect(try await backend.get("/devices/nobody", as: phone.app, token: token).status == 403)
      #expect(try await backend.get("/devices/testuser", as: phone.app).status == 401)
    }
  }

  @Test(
    "T-22 A-089 a device's status has the documented fields, and the number: complete for its user, masked for its app")
  func status() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone(deviceID: "device-1")
      let token = try await backend.token(phone)
      let path = "/device/device-1/status"
      var expected: [String: JSONValue] = [
        "deviceId": "device-1", "enrolled": true, "method": "secureEnclave", "hasPublicKey": true,
        "phoneNumber": "+1234567890", "attested": true,
      ]
      #expect(try await backend.get(path, as: phone.app, token: token).json == .object(expected))
      expected["phoneNumber"] = "+********90"
      #expect(try await backend.get(path, as: phone.app).json == .object(expected))
    }
  }

  @Test(
    "A-152 status, list and history distinguish the device of a debug build from an attested one",
    arguments: [true, false])
  func debugBuild(_ isAttested: Bool) async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone(deviceID: "device-1", app: isAttested ? .genuine() : .debugBuild)
      let token = try await backend.token(phone)
      #expect(try await backend.get("/device/device-1/status", as: phone.app)["attested"] == .bool(isAttested))
      let list = try await backend.get("/devices/testuser", as: phone.app, token: token)
      #expect(list["devices"]?[0]?["attested"] == .bool(isAttested))
      let entries = try await Administration(backend.context).history(
        of: Username("testuser"), before: nil, atMost: 10, by: .command(name: "test"))
      #expect(entries.last?.detail == "device=device-1 method=secureEnclave attested=\(isAttested)")
    }
  }

  @Test("A-089 the status of another user's device is that of a device that does not exist")
  func foreignStatus() async throws {
    try await TestBackend.with { backend in
      try await backend.enrol(TestPhone(deviceID: "device-1"))
      for id in ["device-1", "unknown"] {
        let answer = try await backend.get("/device/\(id)/status", as: .genuine())
        #expect(answer.status == 200)
        #expect(
          answer.json == [
            "deviceId": .string(id), "enrolled": false, "method": nil, "hasPublicKey": false, "phoneNumber": nil,
            "attested": false,
          ])
      }
    }
  }
}
