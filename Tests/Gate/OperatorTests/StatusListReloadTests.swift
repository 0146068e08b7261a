import AndroidKeyAttestation
import Cryptography
import Foundation
import GateProcesses
import GateService
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

@Suite("A reload of the settings of the status list", .serialized, .timeLimit(.minutes(5)))
struct StatusListReloadTests {
  /// A gate for both platforms, whose settings of the status list a test changes.
  private struct Bench {
    let gate: GateProcess
    let visitor: Visitor

    static func serving(_ body: (Bench) async throws -> Void) async throws {
      try await EchoProcess.serving { upstream in
        var plan = GatePlan()
        plan.routes = [("/", upstream)]
        plan.admin = #"{ listen: "unix:DIR/admin.sock" }"#
        plan.servesAndroid = true
        try await GateProcess.serving(plan) { try await body(Bench(gate: $0, visitor: Visitor(to: $0))) }
      }
    }

    var config: [String] { ["-c", gate.folder.path + "/gate.yaml"] }

    /// Writes the settings `app_attest.android`, `nil` for none, and reloads.
    func reload(_ settings: String?) async throws -> Transcript {
      let text = try String(contentsOfFile: config[1], encoding: .utf8)
      let line = settings.map { "  android: { \($0) }" } ?? "  # No list."
      try text.replacing(##/(?m)^ *(android: .*|# No list\.)$/##, with: line)
        .write(toFile: config[1], atomically: true, encoding: .utf8)
      return try await sallyport(["reload"] + config)
    }

    /// Registers a new phone and returns it, or the code of the refusal.
    func register() async throws -> (phone: AndroidPhone?, refusal: String?) {
      let phone = try AndroidPhone(of: gate.authority)
      do {
        try await visitor.register(phone)
        return (phone, nil)
      } catch let unexpected as Unexpected {
        return (nil, unexpected.description)
      }
    }

    /// The lines of `sallyport status`, what it says of the list in JSON, and the status of `/readyz`.
    func status() async throws -> (text: [String], list: GateStatus.StatusList?, readiness: Int) {
      let text = try await sallyport(["status"] + config)
      let status = try await sallyport(["status", "--json"] + config).json(GateStatus.self)
      let readiness = try await AdminBench(gate: gate, visitor: visitor).ask("GET", "/readyz?verbose")
      #expect(text.status == 0 && readiness.text.contains("[+] status list: ") == (status.statusList != nil))
      return (text.output, status.statusList, readiness.status)
    }

    func open(as phone: AndroidPhone) async throws -> ClientWebSocket {
      try await visitor.open("/", phone.credentials(over: try await visitor.challenge()))
    }

    /// Enters the certificate of all simulated phones in the list at `path`, or removes it.
    func list(_ isListed: Bool, at path: String) throws {
      let serial = try #require(gate.authority.android?.trustedEnvironment.key.certificate.serialNumber)
      let further = isListed ? ",\"\(AndroidStatusList.text(ofSerial: serial))\":{\"status\":\"REVOKED\"}" : ""
      try "{\"entries\":{\"7701\":{\"status\":\"REVOKED\"}\(further)}}"
        .write(toFile: path, atomically: true, encoding: .utf8)
    }
  }

  @Test("Another place, another interval, off and on take effect; sockets of keys that are not listed stay")
  func changed() async throws {
    try await Bench.serving { bench in
      let file = bench.gate.folder.path + "/other-list.json"
      let phone = try #require(try await bench.register().phone)
      let socket = try await bench.open(as: phone)
      let iPhone = try Phone(of: bench.gate.authority)
      try await bench.visitor.register(iPhone)
      let untouched = try await bench.visitor.open(as: iPhone, counter: 1)
      func stays() async throws {
        for socket in [socket, untouched] { #expect(try await socket.exchange(.text("a")) == .text("a")) }
      }

      // A URL without an answer: there is no list of this source yet. Registered keys are admitted.
      #expect(try await bench.reload("status_list: 'https://127.0.0.1:1/list'").status == 0)
      let refused = try await bench.register().refusal
      #expect(refused?.contains("status_list_unavailable") == true, "\(refused ?? "registered")")
      _ = try await bench.open(as: phone)
      try await stays()
      let missing = try await bench.status()
      #expect(missing.text.contains("  status list    WARNING: none read yet: no Android key is registered"))
      #expect(missing.list?.usable == false && missing.list?.ageSeconds == nil && missing.readiness == 200)

      // Off: a listed certificate changes nothing.
      #expect(try await bench.reload(nil).status == 0)
      #expect(try await bench.status().list == nil)
      try bench.list(true, at: file)
      #expect(try await bench.register().phone != nil)
      try await stays()

      // Another file, which is read rarely; then often.
      try bench.list(false, at: file)
      #expect(try await bench.reload("status_list: \(file), refresh: 1h").status == 0)
      #expect(try await bench.register().phone != nil)
      #expect(try await bench.reload("status_list: \(file), refresh: 1s").status == 0)
      try await stays()
      let read = try await bench.status()
      #expect(read.text.contains { $0.hasPrefix("  status list    1 certificate, ") }, "\(read.text)")
      #expect(read.list?.source == file && read.list?.usable == true && read.list?.fault == nil)
      #expect(read.list?.ageSeconds.map { $0 < 60 } == true)
      try bench.list(true, at: file)
      let (code, after) = try await socket.ending(since: .now)
      #expect(code == 3003 && after < .seconds(60))
      #expect(try await bench.register().refusal?.contains("attestation_revoked") == true)
      #expect(try await untouched.exchange(.text("a")) == .text("a"))
    }
  }

  @Test("A value that cannot be used is refused with the reason, and the old list is still read")
  func refused() async throws {
    try await Bench.serving { bench in
      let file = bench.gate.folder.androidStatusListPath
      let phone = try #require(try await bench.register().phone)
      let socket = try await bench.open(as: phone)
      for (settings, reason) in [
        ("status_list: 'http://example.com/list'", "is not a URL with https"),
        ("status_list: \(file), refresh: often", "app_attest.android.refresh"),
        ("status_list: \(file), refresh: 2h, max_age: 1h", "shorter than app_attest.android.refresh"),
        ("status_list: 'https://example.com/list', refresh: 1s", "less than 1m, for a list that is downloaded"),
        ("status_list: /nowhere/list.json", "/nowhere/list.json"),
        ("status_lists: \(file)", "unknown key"),
      ] {
        let answer = try await bench.reload(settings)
        #expect(answer.status == 78 && answer.isFailure, "\(settings): \(answer)")
        #expect(answer.errors.joined().contains(reason), "\(answer.errors)")
      }
      #expect(try await socket.exchange(.text("a")) == .text("a"))
      try bench.list(true, at: file)
      let (code, after) = try await socket.ending(since: .now)
      #expect(code == 3003 && after < .seconds(60))
    }
  }
}
