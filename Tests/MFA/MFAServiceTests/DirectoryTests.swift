import MFADomain
import MFAFixtures
import Testing

@Suite("Devices and their state")
struct DirectoryTests {
  @Test("A-088 the list of devices has the seed's fields, and times with Z")
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

  @Test("A-088 another user's list gets 403, and one without a token 401")
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
    "A-089 a device's status has the seed's five fields and the number: in full for its user, masked for its app")
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

  @Test("A-152 status, list and history tell a debug build's device from an attested one")
  func debugBuild() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone(deviceID: "device-1", app: .debugBuild)
      let token = try await backend.token(phone)
      #expect(try await backend.get("/device/device-1/status", as: phone.app)["attested"] == false)
      let list = try await backend.get("/devices/testuser", as: phone.app, token: token)
      #expect(list["devices"]?[0]?["attested"] == false)
      let entries = try await Administration(backend.context).history(
        of: Username("testuser"), before: nil, atMost: 10, by: .command(name: "test"))
      #expect(entries.last?.detail == "device=device-1 method=secureEnclave attested=false")
    }
  }

  @Test("A-089 a device that is none of the caller's looks like one that does not exist")
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
