import ByteCoding
import Foundation
import Glibc
import MFADomain
import MFAFixtures
import TestSupport
import Testing

@Suite("Push services of a backend", .serialized, .timeLimit(.minutes(5)))
struct PushCommandTests {
  /// Calls `body` with a configuration that sends by both services.
  private func configured(
    _ more: String = "", _ body: (BackendInstallation, _ apns: PushServer, _ fcm: PushServer) async throws -> Void
  ) async throws {
    try await PushServer.with(.apns) { apns in
      try await PushServer.with(.fcm) { fcm in
        try await BackendInstallation.make { place in
          try place.configure("push:\n" + apns.configuration + fcm.configuration + more)
          try await body(place, apns, fcm)
        }
      }
    }
  }

  @Test("a check asks both services whether they accept the credentials, and no device gets anything")
  func check() async throws {
    try await configured("  notices: on\n") { place, apns, fcm in
      let run = try await place.operate("check")
      #expect(run.exit == .code(0), "\(run)")
      let text = run.output.joined(separator: "\n")
      #expect(text.contains("push.apns.key_file: the server accepts the key; no device got anything"), "\(text)")
      #expect(
        text.contains("push.fcm.service_account_file: the server accepts the service account; no device got anything"),
        "\(text)")
      #expect(try await apns.requests().allSatisfy { $0["payload"] == .null })
      #expect(try await fcm.requests("messages:send").allSatisfy { $0["status"] == 400 })
      // A key that was revoked, and an account that was.
      try await fcm.command(["token": 400])
      let other = try await PushServer.with(.apns) { $0.pem }
      try place.write(other, toPrivate: "other.p8")
      let text2 = try String(contentsOfFile: place.file, encoding: .utf8).replacing(apns.keyFile, with: "other.p8")
      try text2.write(toFile: place.file, atomically: true, encoding: .utf8)
      let refused = try await place.operate("check")
      #expect(refused.exit == .code(1))
      let faults = (refused.output + refused.errors).joined(separator: "\n")
      #expect(faults.contains("status 403 InvalidProviderToken") && faults.contains("push.apns.team_id"), "\(faults)")
      #expect(faults.contains("refuses the service account: status 400"), "\(faults)")
    }
  }

  @Test(
    "a key file that cannot be used is a fault of its setting",
    arguments: ["missing", "readable", "RSA", "empty", "account without a key"])
  func keyFiles(_ fault: String) async throws {
    try await configured { place, apns, fcm in
      var key = "push.apns.key_file"
      switch fault {
      case "missing": try FileManager.default.removeItem(atPath: apns.keyFile)
      case "readable": #expect(chmod(apns.keyFile, 0o644) == 0)
      case "RSA": try fcm.pem.write(toFile: apns.keyFile, atomically: false, encoding: .utf8)
      case "empty": try "".write(toFile: apns.keyFile, atomically: false, encoding: .utf8)
      default:
        key = "push.fcm.service_account_file"
        try #"{"type": "service_account"}"#.write(toFile: fcm.keyFile, atomically: false, encoding: .utf8)
      }
      let run = try await place.operate("check", "--offline")
      #expect(run.exit == .code(78), "\(run)")
      #expect(run.errors.first?.contains("\(key): ") == true, "\(run.errors)")
      #expect(!run.errors.joined().contains("PRIVATE KEY-----"))
      let start = try await place.operate("run")
      #expect(start.exit != .code(0), "\(start)")
    }
  }

  @Test("values that are not of their form, and settings without effect, are faults")
  func values() async throws {
    try await BackendInstallation.make { place in
      try place.configure(
        """
        push:
          notices: on
          apns: { key_id: abc, team_id: DEF123GHIJ, endpoint: "http://push.example.com", ca_file: ca.pem }
          fcm: { endpoint: "https://fcm.example.com/path", ca_file: ca.pem }
        """)
      let run = try await place.operate("check", "--offline")
      let text = run.errors.joined(separator: "\n")
      #expect(run.exit == .code(78), "\(run)")
      for part in [
        "push.apns.key_file: missing", "push.apns.key_id: must be ten capital letters and digits",
        "push.apns.endpoint: must be https, or http on loopback", "push.fcm.endpoint: must have scheme, host and port",
        "push.fcm.ca_file: has no effect without push.fcm.service_account_file",
      ] { #expect(text.contains(part), "\(part) in \(text)") }
      try place.configure("push: { notices: on }")
      let notices = try await place.operate("check", "--offline")
      #expect(notices.errors.joined().contains("push.notices: has no effect"), "\(notices.errors)")
    }
  }

  @Test("status and metrics show the services, and a reload starts a stopped one again")
  func status() async throws {
    try await configured("metrics: { listen: \"127.0.0.1:0\" }\n") { place, apns, fcm in
      try await place.serving { backend in
        let status = try await place.operate("status")
        let text = status.output.joined(separator: "\n")
        #expect(text.contains("APNs push") && text.contains(apns.url) && text.contains("FCM push"), "\(text)")
        let metrics = try await place.admin("GET", "/metrics").text
        for line in [
          #"mfa_messages_total{kind="apns",outcome="unregistered"} 0"#, #"mfa_push_service_up{kind="fcm"} 1"#,
          #"mfa_messages_queued{kind="apns"} 0"#,
        ] { #expect(metrics.contains(line), "\(line)") }
        let reload = try await place.operate("reload")
        #expect(reload.exit == .code(0), "\(reload)")
        // A fault of a reload leaves the old configuration in use.
        try "no key".write(toFile: apns.keyFile, atomically: false, encoding: .utf8)
        let refused = try await place.operate("reload")
        #expect(refused.exit != .code(0))
        #expect((refused.output + refused.errors).joined().contains("push.apns.key_file"), "\(refused)")
        _ = fcm
        _ = backend
      }
    }
  }

  @Test(
    "an Android device gets its message by Google's service, in its language, and its address ends with its session")
  func android() async throws {
    try await configured { place, apns, fcm in
      let templates = place.folder + "/templates"
      try FileManager.default.createDirectory(atPath: templates, withIntermediateDirectories: true)
      try "Subject: Anmeldung\n\nBist du das?".write(
        toFile: templates + "/sign-in.push.de.txt", atomically: true, encoding: .utf8)
      try place.configure("push:\n" + apns.configuration + fcm.configuration + "messages: { templates: templates }")
      try await place.serving { backend in
        let port = Int(try #require(backend.port))
        func call(
          _ method: String, _ path: String, _ body: JSONValue? = nil, _ phone: TestPhone, _ token: String? = nil
        ) async throws -> Answer {
          let path = "/api/v1" + path
          return try await Answer(
            to: method, path, text: body?.encoded,
            assertion: place.gate.assertion(for: phone.app, of: (method, path)), token: token,
            headers: [("Accept-Language", "de")], at: port)
        }
        func signIn(_ phone: TestPhone) async throws -> String {
          let challenge = try await call("POST", "/auth/initiate", phone.naming, phone)
          let answer = try await call(
            "POST", "/auth/verify-signature",
            [
              "username": .string(phone.username), "deviceId": .string(phone.deviceID),
              "challengeId": challenge["challengeId"] ?? nil,
              "signature": .string(try phone.sign(challenge["challenge"]?.text ?? "")),
            ], phone)
          return try #require(answer["token"]?.text, "\(answer)")
        }
        let (closed, asking) = (TestPhone(app: .genuine(method: "android-key")), TestPhone())
        #expect(try await call("POST", "/mfa/enroll", closed.enrolment(), closed).status == 200)
        let token = try await signIn(closed)
        let registered = try await call(
          "POST", "/auth/push/address", ["token": .string(PushNotification.registrationToken)], closed, token)
        #expect(registered["active"] == true, "\(registered)")
        let code = try await call("POST", "/mfa/link", [:], closed, token)
        var enrolment = try #require(asking.enrolment().members)
        enrolment["linkCode"] = code["linkCode"] ?? nil
        #expect(try await call("POST", "/mfa/enroll", .object(enrolment), asking).status == 200)
        let other = try await signIn(asking)
        let push = try await call("POST", "/auth/push/start", [:], asking, other)
        let message = try await fcm.requests(1, "messages:send")[0]
        #expect(message["status"] == 200 && message["message"]?["data"]?["push"] == push["pushId"], "\(message)")
        #expect(message["message"]?["notification"] == ["title": "Anmeldung", "body": "Bist du das?"])
        _ = try await backend.process.errors.first("the sent message") { $0.contains(#""message sent""#) }
        #expect(try await call("POST", "/auth/token/revoke", [:], closed, token).status == 200)
        #expect(try await call("POST", "/auth/push/start", [:], asking, other).status == 200)
        #expect(try await fcm.requests("messages:send").count == 1)
        #expect(try await apns.requests().isEmpty)
        #expect(!backend.process.errors.lines.joined().contains(PushNotification.registrationToken))
      }
    }
  }
}
