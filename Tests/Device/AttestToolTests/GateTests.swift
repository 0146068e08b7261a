import GateWire
import AttestClient
import ByteCoding
import Cryptography
import Foundation
import Glibc
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

@testable import AttestTool

/// A gate for development with an echo server behind it, and a user in front of it.
struct GateSetup {
  let place: Workplace
  let echo: RunningProgram
  let gate: RunningProgram
  let url: String
  let authority: String

  /// - Parameter upstream: what stands behind the gate instead of the echo server.
  init(clientAuthority: String? = nil, upstream: String? = nil, in place: Workplace? = nil) async throws {
    let place = try place ?? Workplace()
    self.place = place
    authority = place.folder + "/dev"
    echo = try await place.start(.attest, ["echo", "--listen", "127.0.0.1:0"], lines: 1)
    let behind = try upstream ?? #require(echo.greeting.first)
    gate = try await place.startGate(upstream: behind, port: 0, clientAuthority: clientAuthority)
    url = try #require(gate.url)
  }

  /// Runs `attest` with the gate's authority.
  func attest(_ arguments: String..., input: String = "") async throws -> Outcome {
    try await place.run(arguments + ["--authority", authority], input: input)
  }

  var store: DeviceStore { get throws { try DeviceStore(environment: place.environment) } }

  /// What the device `default` remembers of the gate.
  func record() throws -> KeyRecord {
    let authority = try AuthorityFolder(path: authority).loadOrMake(appID: "SALLYPORT1.com.example.app", at: .now())
    let gate = GateUnderAuthority(gate: try GateURL(url).gateName, authority)
    return try FileKeyIDStore(path: store.recordPath("default", gate)).load()
  }
}

extension Workplace {
  func startGate(
    upstream: String, port: Int, clientAuthority: String? = nil, in name: String = "dev"
  ) async throws -> RunningProgram {
    let arguments = ["dev", "--upstream", upstream, "--port", "\(port)", "--folder", folder + "/" + name]
    let debugPath = clientAuthority.map { ["--client-ca", $0] } ?? []
    return try await start(.sallyport, arguments + debugPath, lines: 6)
  }
}

extension RunningProgram {
  /// What `sallyport dev` says its address is.
  var url: String? {
    greeting.first { $0.hasPrefix("url") }?.split(separator: " ").last.map(String.init)
  }
}

extension TestAuthority {
  /// What a debug build presents: of version 1, as the guide's own commands make it, or of version 3.
  func debugIdentity(_ version: CertificateTemplate.Version) throws -> SigningIdentity {
    guard version == .v1 else { return try clientIdentity(commonName: "Debug", at: .now()) }
    let key = try ECPrivateKey(.p256)
    var template = CertificateTemplate(
      subject: DistinguishedName(.commonName("Debug")), subjectPublicKeyInfo: key.spki,
      notBefore: tlsAuthority.certificate.notBefore, notAfter: tlsAuthority.certificate.notAfter)
    template.version = version
    let certificate = try template.signed(by: tlsAuthority.certificate, key: tlsAuthority.key)
    return SigningIdentity(certificate: certificate, key: key)
  }
}

@Suite("attest and a gate", .serialized)
struct GateTests {
  @Test("a message goes there and back, and the device is made and registered on the way")
  func once() async throws {
    let house = try await GateSetup()
    let outcome = try await house.attest("connect", house.url, "--once", "hello")
    #expect(outcome == Outcome(status: 0, output: "hello\n", errors: ""))
    #expect(try house.record().keyID != nil)
    let shown = try await house.attest("device", "show", "default")
    #expect(shown.output.contains("attested, counter 1"))
    #expect(!shown.output.contains("PRIVATE"))
  }

  @Test("registration happens once")
  func register() async throws {
    let house = try await GateSetup()
    let first = try await house.attest("register", house.url)
    let second = try await house.attest("register", house.url)
    #expect(first.status == 0)
    #expect(first == second)
    #expect(first.output.hasSuffix(" \(try #require(try house.record().keyID))\n"))
  }

  @Test("the pipe carries lines, empty ones and an unfinished one too, in order")
  func pipe() async throws {
    let house = try await GateSetup()
    let outcome = try await house.attest("connect", house.url, "--linger", "0.3", input: "a\nbä\r\n\nlast")
    #expect(outcome == Outcome(status: 0, output: "a\nbä\n\nlast\n", errors: ""))
  }

  @Test("the pipe carries a megabyte of text in order")
  func bulk() async throws {
    let house = try await GateSetup()
    let text = (0..<20_000).map { "line \($0) \(String(repeating: "x", count: $0 % 90))\n" }.joined()
    let outcome = try await house.attest("connect", house.url, input: text)
    #expect(outcome.status == 0)
    #expect(outcome.output == text)
  }

  @Test("the pipe tells apart text and binary where it is asked to")
  func json() async throws {
    let house = try await GateSetup()
    let text = try await house.attest("connect", house.url, "--json", "--once", "é")
    #expect(text.output == "{\"data\":\"é\",\"type\":\"text\"}\n")
    let binary = try await house.attest("connect", house.url, "--json", "--binary", "--once", "é")
    #expect(binary.output == "{\"data\":\"w6k=\",\"type\":\"binary\"}\n")
  }

  @Test("headers are exactly three lines, and open one connection")
  func headers() async throws {
    let house = try await GateSetup()
    let outcome = try await house.attest("headers", house.url)
    let lines = outcome.output.split(separator: "\n", omittingEmptySubsequences: false)
    #expect(lines.count == 4 && lines.last == "")
    let fields = try lines.dropLast().map { line in
      let parts = try #require(line.firstRange(of: ": "))
      return HTTPField(String(line[..<parts.lowerBound]), String(line[parts.upperBound...]))
    }
    #expect(fields.map(\.name) == ["X-App-Assert-KeyId", "X-App-Assert-Data", "X-App-Assert-Nonce"])

    let transport = EngineTransport(
      engine: try DeviceSession.makeEngine(),
      tls: try .init(authorityFile: AuthorityFolder(path: house.authority).tlsAuthorityPath))
    let upgrade = { () async throws(UpgradeError) in
      try await transport.openWebSocket(
        try Self.address(house.url), headers: .init(fields.map { .init(name: $0.name, value: $0.value) }))
    }
    let socket = try await upgrade()
    #expect(socket.response.status == 101)
    let error = await #expect(throws: UpgradeError.self) { try await upgrade() }
    guard case .refused(let refusal) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(refusal.status == 401)
    #expect(refusal.code == .nonceUsed)
  }

  private static func address(_ url: String) throws(UpgradeError) -> GateURL {
    do throws(Failure) { return try GateURL(url) } catch { throw .transport(.unreachable(error.message)) }
  }

  @Test("processes that share a device wait for each other")
  func concurrent() async throws {
    let house = try await GateSetup()
    let outcomes = try await withThrowingTaskGroup(of: Outcome.self) { group in
      for index in 0..<6 { group.addTask { try await house.attest("connect", house.url, "--once", "m\(index)") } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(outcomes.map(\.output).sorted() == (0..<6).map { "m\($0)\n" })
    #expect(outcomes.allSatisfy { $0.status == 0 && $0.errors.isEmpty })
  }

  @Test("a key that the gate has forgotten is replaced, and not again within the hour")
  func forgotten() async throws {
    let house = try await GateSetup()
    _ = try await house.attest("register", house.url)
    let first = try house.record()
    let port = try Int(GateURL(house.url).port)
    for round in 1...2 {
      try await house.gate.stop()
      for name in try FileManager.default.contentsOfDirectory(atPath: house.authority) where name.contains("state.db") {
        try FileManager.default.removeItem(atPath: "\(house.authority)/\(name)")
      }
      let upstream = try #require(house.echo.greeting.first)
      let gate = try await house.place.startGate(upstream: upstream, port: port)
      let outcome = try await house.attest("connect", house.url, "--once", "again")
      if round == 1 {
        #expect(outcome == Outcome(status: 0, output: "again\n", errors: ""))
        #expect(try house.record().keyID != first.keyID)
      } else {
        // Whoever asks before is told what there is to do.
        let refused = try await house.attest("register", house.url)
        #expect(refused.status == 77, "\(refused.errors)")
        #expect(refused.complaints.first?.contains("the gate refuses the key that default remembers") == true)
        #expect(refused.complaints.last?.contains("`attest device rm default` makes room at once") == true)
        #expect(outcome.status == 75)
        #expect(outcome.complaints.first?.contains("a new one may be made after") == true)
        #expect(outcome.complaints.last?.contains("`attest device rm NAME` makes a new device at once") == true)
      }
      try await gate.stop()
    }
  }

  @Test(
    "gates that follow one another at one address, each with an authority of its own, are not mistaken for each other")
  func changedAuthority() async throws {
    let house = try await GateSetup()
    let port = try Int(GateURL(house.url).port)
    let upstream = try #require(house.echo.greeting.first)
    #expect(try await house.attest("connect", house.url, "--once", "first").output == "first\n")
    let first = try house.record()
    try await house.gate.stop()
    // Back at the first one in the end: it still knows the key.
    for name in ["second", "third", "dev"] {
      let gate = try await house.place.startGate(upstream: upstream, port: port, in: name)
      let arguments = ["connect", house.url, "--authority", house.place.folder + "/" + name, "--once", name]
      #expect(try await house.place.run(arguments) == Outcome(status: 0, output: name + "\n", errors: ""))
      try await gate.stop()
    }
    #expect(try house.record() == first)
    let shown = try await house.attest("device", "show", "default")
    #expect(shown.output.split(separator: "\n").count { $0.hasPrefix("gate     localhost:\(port)  authority ") } == 3)
  }

  @Test("a gate that cannot be trusted is told nothing")
  func untrusted() async throws {
    let house = try await GateSetup()
    let stranger = house.place.folder + "/stranger"
    _ = try AuthorityFolder(path: stranger).loadOrMake(appID: "AAABBBCCC1.com.example.app", at: .now())
    let outcome = try await house.place.run(["connect", house.url, "--authority", stranger, "--once", "x"])
    #expect(outcome.status == 76)
    #expect(outcome.complaints.count == 2)
    let record = try house.record()
    #expect(record == KeyRecord())
    let file = try await house.attest("connect", house.url, "--ca", "/nowhere.pem", "--once", "x")
    #expect(file.status == 66)
  }

  @Test("a device of another authority is refused, with the gate's own text")
  func foreignDevice() async throws {
    let house = try await GateSetup()
    let stranger = house.place.folder + "/stranger"
    _ = try AuthorityFolder(path: stranger).loadOrMake(appID: "SALLYPORT1.com.example.app", at: .now())
    let root = AuthorityFolder(path: house.authority).tlsAuthorityPath
    let outcome = try await house.place.run(["register", house.url, "--authority", stranger, "--ca", root])
    #expect(outcome.status == 77)
    #expect(outcome.complaints.first?.contains("401 chain_untrusted") == true)
    #expect(outcome.complaints.last == "hint: the gate does not trust this authority: see `app_attest.trust`")
  }

  @Test("a backend that is away is told apart from a refusal")
  func noBackend() async throws {
    let house = try await GateSetup()
    try await house.echo.stop()
    let outcome = try await house.attest("connect", house.url, "--once", "x")
    #expect(outcome.status == 69)
    #expect(outcome.complaints.first?.contains("502 upstream_unavailable") == true)
  }

  @Test("a gate that is away is told apart, too")
  func noGate() async throws {
    let house = try await GateSetup()
    try await house.gate.stop()
    let outcome = try await house.attest("connect", house.url, "--once", "x")
    #expect(outcome.status == 69)
    #expect(outcome.complaints.first?.contains("cannot be reached") == true)
  }

  @Test("a development gate that cannot come up leaves its folder as it was")
  func failedStart() async throws {
    let place = try Workplace()
    let folder = place.folder + "/dev"
    let wrong = try await place.run(
      ["dev", "--upstream", "ws://127.0.0.1:9", "--app-id", "com.example.app"], of: .sallyport)
    #expect(wrong.status == 64)
    #expect(wrong.complaints.first?.hasPrefix("error: --app-id: com.example.app is not TEAMID.bundle.id") == true)
    let gate = try await place.startGate(upstream: "ws://127.0.0.1:9", port: 0)
    let before = try Data(contentsOf: URL(fileURLWithPath: folder + "/sallyport.yaml"))
    let arguments = ["dev", "--upstream", "ws://127.0.0.1:9", "--folder", folder]
    #expect(try await place.run(arguments + ["--forward", "foo"], of: .sallyport).status == 78)
    #expect(try Data(contentsOf: URL(fileURLWithPath: folder + "/sallyport.yaml")) == before)
    let other = try await place.run(arguments + ["--app-id", "AAABBBCCC1.com.example.app"], of: .sallyport)
    #expect(other.status == 64)
    #expect(other.complaints.first?.contains("run SALLYPORT1.com.example.app") == true)
    #expect(try await gate.stop() == 0)
  }

  @Test("a development gate names the flags that are wrong, and not the file that it makes of them")
  func wrongFlags() async throws {
    let place = try Workplace()
    for (flag, value) in [
      ("--upstream", "http://127.0.0.1:9"), ("--forward", "foo"), ("--address", "nowhere"),
      ("--client-ca", "/none.pem"),
    ] {
      let outcome = try await place.run(["dev", "--folder", place.folder + "/dev", flag, value], of: .sallyport)
      #expect(outcome.status == 78)
      #expect(outcome.complaints.first?.hasPrefix("error: \(flag): ") == true, "\(outcome.errors)")
      #expect(!outcome.errors.contains("sallyport.yaml"), "\(outcome.errors)")
    }
    let gate = try await place.startGate(upstream: "ws://127.0.0.1:9", port: 0)
    let port = try GateURL(#require(gate.url)).port
    let arguments = ["dev", "--folder", place.folder + "/other", "--port", "\(port)"]
    let taken = try await place.run(arguments, of: .sallyport)
    #expect(taken.status == 71)
    #expect(taken.complaints.last?.hasSuffix("or set --port to another port") == true, "\(taken.errors)")
    try await gate.stop()
  }

  @Test("a development gate takes no folder that is somebody else's, and none that nobody named")
  func foreignFolder() async throws {
    let place = try Workplace()
    let folder = place.folder + "/notes"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    try Data("text".utf8).write(to: URL(fileURLWithPath: folder + "/a.txt"))
    let foreign = try await place.run(["dev", "--folder", folder], of: .sallyport)
    #expect(foreign.status == 73)
    #expect(foreign.complaints.first?.hasPrefix("error: \(folder) is not empty") == true, "\(foreign.errors)")
    #expect(foreign.complaints.last?.hasPrefix("hint: name an empty or new folder") == true)
    let homeless = try await place.run(["dev"], of: .sallyport, environment: ["HOME": "", "XDG_DATA_HOME": ""])
    #expect(homeless.status == 66)
    #expect(homeless.complaints.last == "hint: name a folder with --folder", "\(homeless.errors)")
  }

  @Test("what fails in the handshake is told with what to look at")
  func noHandshake() async throws {
    let house = try await GateSetup()
    let plain = try #require(house.echo.greeting.first).replacingOccurrences(of: "ws://", with: "wss://")
    let outcome = try await house.attest("connect", plain, "--once", "x")
    #expect(outcome.status == 76)
    #expect(outcome.complaints.last?.contains("does not speak TLS") == true, "\(outcome.errors)")
    let (gate, url) = try await house.furtherGate(
      enforcement: "enforce",
      listen: #"{ address: 127.0.0.1, port: 0, proxy_protocol: v2, trusted_proxies: ["127.0.0.1"] }"#)
    defer { gate.kill() }
    let behind = try await house.attest("connect", url, "--once", "x")
    #expect(behind.status == 76)
    #expect(behind.complaints.last?.contains("PROXY protocol") == true, "\(behind.errors)")
  }

  @Test("a result that cannot be written is no success")
  func lostOutput() async throws {
    let place = try Workplace()
    let (exit, _, errors) = try await ChildProcess.run(
      "/bin/sh", ["-c", #""$0" --help >/dev/null && "$0" device list --json >/dev/full"#, Program.attest.path],
      environment: place.environment.mapValues(Optional.some))
    #expect(exit == .code(74))
    #expect(errors.first == "error: standard output: No space left on device")
  }

  @Test("a signal that comes while a gate starts ends it at once, or in order when it has said that it serves")
  func earlySignals() async throws {
    let place = try Workplace()
    for _ in 0..<10 {
      #expect(try await place.startGate(upstream: "ws://127.0.0.1:9", port: 0).stop() == 0)
    }
    // From before it opens anything until after it says that it serves.
    for milliseconds in stride(from: 0, to: 300, by: 10) {
      let gate = try await place.start(.sallyport, ["dev", "--upstream", "ws://127.0.0.1:9", "--port", "0"], lines: 0)
      try await Task.sleep(for: .milliseconds(milliseconds))
      // 0, or nothing because the signal ended it; but an end.
      #expect(try await gate.stop() ?? 0 == 0)
    }
  }

  @Test("the handshake is shown without what could be used")
  func handshake() async throws {
    let house = try await GateSetup()
    let outcome = try await house.attest("connect", house.url, "--once", "x", "--show-handshake", "--ping")
    #expect(outcome.output == "x\n")
    #expect(outcome.errors.contains("> GET / HTTP/1.1\n"))
    #expect(outcome.errors.contains("< HTTP/1.1 101\n"))
    #expect(outcome.errors.contains("\nping: "))
    let nonce = try #require(outcome.complaints.first { $0.contains("Nonce") })
    #expect(nonce.hasSuffix("…") && nonce.count < 60)
  }

  @Test(
    "the certificate of a debug build opens a socket without a device",
    arguments: [
      CertificateTemplate.Version.v1, .v3,
    ])
  func debugPath(version: CertificateTemplate.Version) async throws {
    let place = try Workplace()
    let maker = try TestAuthority(appID: "AAABBBCCC1.com.example.app", at: .now())
    let client = try maker.debugIdentity(version)
    let files = ["ca.pem", "client.crt", "client.key"].map { place.folder + "/" + $0 }
    let texts = [
      try maker.tlsAuthority.certificate.pem, try client.certificate.pem, try client.key.pkcs8PEM,
    ]
    for (file, text) in zip(files, texts) { try Data(text.utf8).write(to: URL(fileURLWithPath: file)) }

    let house = try await GateSetup(clientAuthority: files[0], in: place)
    let root = AuthorityFolder(path: house.authority).tlsAuthorityPath
    let arguments = ["connect", house.url, "--ca", root, "--once", "hello"]
    let outcome = try await place.run(arguments + ["--cert", files[1], "--key", files[2]])
    #expect(outcome == Outcome(status: 0, output: "hello\n", errors: ""))
    #expect(try !house.store.exists("default"))
    let mismatch = try await place.run(arguments + ["--cert", files[0], "--key", files[2]])
    #expect(mismatch.status == 66)
  }

  @Test("a signal ends the echo server in order", arguments: [SIGINT, SIGTERM])
  func signals(signal: Int32) async throws {
    let place = try Workplace()
    let echo = try await place.start(.attest, ["echo", "--listen", "127.0.0.1:0"], lines: 1)
    #expect(try await echo.stop(signal) == 0)
  }

  @Test("a port that is taken is not taken again")
  func takenPort() async throws {
    let place = try Workplace()
    let echo = try await place.start(.attest, ["echo", "--listen", "127.0.0.1:0"], lines: 1)
    let address = try #require(echo.greeting.first).dropFirst("ws://".count).dropLast()
    let outcome = try await place.run(["echo", "--listen", String(address)])
    #expect(outcome.status == 71)
    #expect(outcome.complaints.last == "hint: another port: --listen 127.0.0.1:0")
  }

  @Test("the numbers of standard streams that were closed at the start go to no socket")
  func closedStreams() async throws {
    let echo = try ChildProcess(
      "/bin/sh", ["-c", "exec \"$0\" echo --listen 127.0.0.1:0 <&- 2>&-", Places.product("attest")])
    defer { echo.kill() }
    _ = try await echo.output.first("the echo server's port") { $0.hasPrefix("ws://") }
    for number in [STDIN_FILENO, STDERR_FILENO] {
      #expect(try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(echo.id)/fd/\(number)") == "/dev/null")
    }
  }
}
