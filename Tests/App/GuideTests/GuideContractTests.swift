import GateProcesses
import TestSupport
import Testing
import Transport
import TransportEngine

@Suite(
  "An app that follows the guide", .timeLimit(.minutes(10)),
  .enabled("needs unshare and mount, which this system does not permit", GuideApp.isPossible))
struct GuideContractTests {
  @Test("E-008, E-019 and E-029 The app registers once, and its three headers open a socket each time")
  func opens() async throws {
    try await EchoProcess.serving { upstream in
      var plan = GatePlan()
      plan.routes = [("/", upstream)]
      try await GateProcess.serving(plan) { gate in
        let app = try GuideApp(of: gate)
        let keyID = try await app.register()
        #expect(try await app.register() == keyID)

        let visitor = try Visitor(to: gate)
        for message in ["first", "second"] {
          let headers = try await app.headers()
          #expect(
            headers.fields.map(\.name).sorted()
              == ["X-App-Assert-Data", "X-App-Assert-KeyId", "X-App-Assert-Nonce"])
          #expect(headers.first("X-App-Assert-KeyId") == keyID)
          let socket = try await visitor.open("/", headers)
          #expect(try await socket.exchange(.text(message)) == .text(message))
          await socket.close()
          #expect(try await visitor.refusal(of: headers) == "nonce_used")
        }
      }
    }
  }

  @Test("E-009 The app receives the guide's message if its nonce has expired")
  func expired() async throws {
    var plan = GatePlan()
    plan.challengeTTL = "1s"
    try await GateProcess.serving(plan) { gate in
      var app = try GuideApp(of: gate)
      app.attestationTime = .milliseconds(1200)
      await #expect(throws: GuideApp.Thrown(error: #"registrationFailed("Invalid or expired nonce")"#)) {
        try await app.register()
      }
    }
  }

  @Test("E-010 The app receives the guide's message if the gate has no app configured")
  func unconfigured() async throws {
    var plan = GatePlan()
    plan.hasApp = false
    try await GateProcess.serving(plan) { gate in
      let app = try GuideApp(of: gate)
      await #expect(throws: GuideApp.Thrown(error: #"registrationFailed("Server not configured for App Attest")"#)) {
        try await app.register()
      }
    }
  }

  @Test("E-011 The app receives the guide's message if the gate serves another app")
  func foreign() async throws {
    try await GateProcess.serving(GatePlan()) { gate in
      var app = try GuideApp(of: gate)
      app.appID = "\(GatePlan.teamID).com.example.other"
      await #expect(throws: GuideApp.Thrown(error: #"registrationFailed("rpIdHash does not match bundleId")"#)) {
        try await app.register()
      }
      // The app has saved nothing.
      await #expect(throws: GuideApp.Thrown(error: "serviceUnavailable")) { try await app.headers() }
    }
  }

  @Test("The app does not connect to a gate with an untrusted certificate")
  func untrusted() async throws {
    try await GateProcess.serving(GatePlan()) { gate in
      var app = try GuideApp(of: gate)
      app.trustsTheGate = false
      let thrown = await #expect(throws: GuideApp.Thrown.self) { try await app.register() }
      #expect(thrown?.error.contains("NSURLErrorDomain") == true)
    }
  }
}
