import AttestClient
import ByteCoding
import Commands
import Cryptography
import Foundation
import Wire
import Glibc
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

@testable import attest

/// A development gate with an echo server as its upstream, and the folder of a user of `attest`.
struct GateSetup {
  let place: Workplace
  let echo: RunningProgram
  let gate: RunningProgram
  let url: String
  let authority: String

  /// - Parameter upstream: The upstream of the gate; `nil` for the echo server.
  init(clientAuthority: String? = nil, upstream: String? = nil, in place: Workplace? = nil) async throws {
    let place = try place ?? Workplace()
    self.place = place
    authority = place.folder + "/dev"
    echo = try await place.start(.attest, ["echo", "--listen", "127.0.0.1:0"], lines: 1)
    let destination = try upstream ?? #require(echo.firstLines.first)
    gate = try await place.startGate(upstream: destination, port: 0, clientAuthority: clientAuthority)
    url = try #require(gate.url)
  }

  /// Runs `attest` with the gate's authority.
  func attest(_ arguments: String..., input: String = "") async throws -> Outcome {
    try await place.run(arguments + ["--authority", authority], input: input)
  }

  var store: DeviceStore { get throws { try DeviceStore(environment: place.environment) } }

  /// Returns the record of the device `default` about the gate.
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
  /// The address that `sallyport dev` prints.
  var url: String? {
    firstLines.first { $0.hasPrefix("url") }?.split(separator: " ").last.map(String.init)
  }
}

extension TestAuthority {
  /// Creates the client certificate of a debug build: of version 1, like the commands of the guide, or of version 3.
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
  @Test("A message is echoed, and the device is created and registered automatically")
  func once() async throws {
    let setup = try await GateSetup()
    let outcome = try await setup.attest("connect", setup.url, "--once", "hello")
    #expect(outcome == Outcome(status: 0, output: "hello\n", errors: ""))
    #expect(try setup.record().keyID != nil)
    let shown = try await setup.attest("device", "show", "default")
    #expect(shown.output.contains("attested, counter 1"))
    #expect(!shown.output.contains("PRIVATE"))
  }

  @Test("A device is registered once")
  func register() async throws {
    let setup = try await GateSetup()
    let first = try await setup.attest("register", setup.url)
    let second = try await setup.attest("register", setup.url)
    #expect(first.status == 0)
    #expect(first == second)
    #expect(first.output.hasSuffix(" \(try #require(try setup.record().keyID))\n"))
  }

  @Test("The pipe carries lines in order, also empty lines and an unfinished one")
  func pipe() async throws {
    let setup = try await GateSetup()
    let outcome = try await setup.attest("connect", setup.url, "--linger", "2.5", input: "a\nbä\r\n\nlast")
    #expect(outcome == Outcome(status: 0, output: "a\nbä\n\nlast\n", errors: ""))
  }

  @Test("The pipe carries a megabyte of text in order")
  func bulk() async throws {
    let setup = try await GateSetup()
    let text = (0..<20_000).map { "line \($0) \(String(repeating: "x", count: $0 % 90))\n" }.joined()
    let outcome = try await setup.attest("connect", setup.url, "--linger", "2.5", input: text)
    #expect(outcome.status == 0)
    #expect(outcome.output == text)
  }

  @Test("With --json, the pipe distinguishes text and binary messages")
  func json() async throws {
    let setup = try await GateSetup()
    let text = try await setup.attest("connect", setup.url, "--json", "--once", "é")
    #expect(text.output == "{\"data\":\"é\",\"type\":\"text\"}\n")
    let binary = try await setup.attest("connect", setup.url, "--json", "--binary", "--once", "é")
    #expect(binary.output == "{\"data\":\"w6k=\",\"type\":\"binary\"}\n")
  }

  @Test("The command headers prints exactly three lines, which open one connection")
  func headers() async throws {
    let setup = try await GateSetup()
    let outcome = try await setup.attest("headers", setup.url)
    let lines = outcome.output.split(separator: "\n", omittingEmptySubsequences: false)
    #expect(lines.count == 4 && lines.last == "")
    let fields = try lines.dropLast().map { line in
      let parts = try #require(line.firstRange(of: ": "))
      return HTTPField(String(line[..<parts.lowerBound]), String(line[parts.upperBound...]))
    }
    #expect(fields.map(\.name) == ["X-App-Assert-KeyId", "X-App-Assert-Data", "X-App-Assert-Nonce"])

    let transport = EngineTransport(
      engine: try DeviceSession.makeEngine(),
      tls: try .init(authorityFile: AuthorityFolder(path: setup.authority).tlsAuthorityPath))
    let upgrade = { () async throws(UpgradeError) in
      try await transport.openWebSocket(
        try Self.address(setup.url), headers: .init(fields.map { .init(name: $0.name, value: $0.value) }))
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

  @Test("Processes that share a device wait for each other")
  func concurrent() async throws {
    let setup = try await GateSetup()
    let outcomes = try await withThrowingTaskGroup(of: Outcome.self) { group in
      for index in 0..<6 { group.addTask { try await setup.attest("connect", setup.url, "--once", "m\(index)") } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(outcomes.map(\.output).sorted() == (0..<6).map { "m\($0)\n" })
    #expect(outcomes.allSatisfy { $0.status == 0 && $0.errors.isEmpty })
  }

  @Test("A key that the gate no longer knows is replaced, but not again within one hour")
  func forgotten() async throws {
    let setup = try await GateSetup()
    _ = try await setup.attest("register", setup.url)
    let first = try setup.record()
    let port = try Int(GateURL(setup.url).port)
    for round in 1...2 {
      try await setup.gate.stop()
      for name in try FileManager.default.contentsOfDirectory(atPath: setup.authority) where name.contains("state.db") {
        try FileManager.default.removeItem(atPath: "\(setup.authority)/\(name)")
      }
      let upstream = try #require(setup.echo.firstLines.first)
      let gate = try await setup.place.startGate(upstream: upstream, port: port)
      let outcome = try await setup.attest("connect", setup.url, "--once", "again")
      if round == 1 {
        #expect(outcome == Outcome(status: 0, output: "again\n", errors: ""))
        #expect(try setup.record().keyID != first.keyID)
      } else {
        // An earlier attempt is refused with a hint.
        let refused = try await setup.attest("register", setup.url)
        #expect(refused.status == 77, "\(refused.errors)")
        #expect(refused.errorLines.first?.contains("the gate refuses the key that default remembers") == true)
        #expect(refused.errorLines.last?.contains("`attest device rm default` makes room at once") == true)
        #expect(outcome.status == 75)
        #expect(outcome.errorLines.first?.contains("a new one may be made after") == true)
        #expect(outcome.errorLines.last?.contains("`attest device rm NAME` makes a new device at once") == true)
      }
      try await gate.stop()
    }
  }

  @Test(
    "Successive gates at one address with different authorities are distinguished")
  func changedAuthority() async throws {
    let setup = try await GateSetup()
    let port = try Int(GateURL(setup.url).port)
    let upstream = try #require(setup.echo.firstLines.first)
    #expect(try await setup.attest("connect", setup.url, "--once", "first").output == "first\n")
    let first = try setup.record()
    try await setup.gate.stop()
    // The last gate is the first one again: it still knows the key.
    for name in ["second", "third", "dev"] {
      let gate = try await setup.place.startGate(upstream: upstream, port: port, in: name)
      let arguments = ["connect", setup.url, "--authority", setup.place.folder + "/" + name, "--once", name]
      #expect(try await setup.place.run(arguments) == Outcome(status: 0, output: name + "\n", errors: ""))
      try await gate.stop()
    }
    #expect(try setup.record() == first)
    let shown = try await setup.attest("device", "show", "default")
    #expect(shown.output.split(separator: "\n").count { $0.hasPrefix("gate     localhost:\(port)  authority ") } == 3)
  }

  @Test("An untrusted gate receives no data")
  func untrusted() async throws {
    let setup = try await GateSetup()
    let otherAuthority = setup.place.folder + "/other"
    _ = try AuthorityFolder(path: otherAuthority).loadOrMake(appID: "AAABBBCCC1.com.example.app", at: .now())
    let outcome = try await setup.place.run(["connect", setup.url, "--authority", otherAuthority, "--once", "x"])
    #expect(outcome.status == 76)
    #expect(outcome.errorLines.count == 2)
    let record = try setup.record()
    #expect(record == KeyRecord())
    let file = try await setup.attest("connect", setup.url, "--ca", "/nowhere.pem", "--once", "x")
    #expect(file.status == 66)
  }

  @Test("A device of another authority is refused with the gate's message")
  func foreignDevice() async throws {
    let setup = try await GateSetup()
    let otherAuthority = setup.place.folder + "/other"
    _ = try AuthorityFolder(path: otherAuthority).loadOrMake(appID: "SALLYPORT1.com.example.app", at: .now())
    let root = AuthorityFolder(path: setup.authority).tlsAuthorityPath
    let outcome = try await setup.place.run(["register", setup.url, "--authority", otherAuthority, "--ca", root])
    #expect(outcome.status == 77)
    #expect(outcome.errorLines.first?.contains("401 chain_untrusted") == true)
    #expect(outcome.errorLines.last == "hint: the gate does not trust this authority: see `app_attest.trust`")
  }

  @Test("An unavailable backend is distinguished from a refusal")
  func noBackend() async throws {
    let setup = try await GateSetup()
    try await setup.echo.stop()
    let outcome = try await setup.attest("connect", setup.url, "--once", "x")
    #expect(outcome.status == 69)
    #expect(outcome.errorLines.first?.contains("502 upstream_unavailable") == true)
  }

  @Test("An unreachable gate is reported as such")
  func noGate() async throws {
    let setup = try await GateSetup()
    try await setup.gate.stop()
    let outcome = try await setup.attest("connect", setup.url, "--once", "x")
    #expect(outcome.status == 69)
    #expect(outcome.errorLines.first?.contains("cannot be reached") == true)
  }

  @Test("A development gate that cannot start leaves its folder unchanged")
  func failedStart() async throws {
    let place = try Workplace()
    let folder = place.folder + "/dev"
    let wrong = try await place.run(
      ["dev", "--upstream", "ws://127.0.0.1:9", "--app-id", "com.example.app"], of: .sallyport)
    #expect(wrong.status == 64)
    #expect(wrong.errorLines.first?.hasPrefix("error: --app-id: com.example.app is not TEAMID.bundle.id") == true)
    let gate = try await place.startGate(upstream: "ws://127.0.0.1:9", port: 0)
    let before = try Data(contentsOf: URL(fileURLWithPath: folder + "/sallyport.yaml"))
    let arguments = ["dev", "--upstream", "ws://127.0.0.1:9", "--folder", folder]
    #expect(try await place.run(arguments + ["--forward", "foo"], of: .sallyport).status == 78)
    #expect(try Data(contentsOf: URL(fileURLWithPath: folder + "/sallyport.yaml")) == before)
    let other = try await place.run(arguments + ["--app-id", "AAABBBCCC1.com.example.app"], of: .sallyport)
    #expect(other.status == 64)
    #expect(other.errorLines.first?.contains("run SALLYPORT1.com.example.app") == true)
    #expect(try await gate.stop() == 0)
  }

  @Test("A development gate reports invalid flags by name, not the file that it generates from them")
  func wrongFlags() async throws {
    let place = try Workplace()
    for (flag, value) in [
      ("--upstream", "http://127.0.0.1:9"), ("--forward", "foo"), ("--address", "nowhere"),
      ("--client-ca", "/none.pem"),
    ] {
      let outcome = try await place.run(["dev", "--folder", place.folder + "/dev", flag, value], of: .sallyport)
      #expect(outcome.status == 78)
      #expect(outcome.errorLines.first?.hasPrefix("error: \(flag): ") == true, "\(outcome.errors)")
      #expect(!outcome.errors.contains("sallyport.yaml"), "\(outcome.errors)")
    }
    let gate = try await place.startGate(upstream: "ws://127.0.0.1:9", port: 0)
    let port = try GateURL(#require(gate.url)).port
    let arguments = ["dev", "--folder", place.folder + "/other", "--port", "\(port)"]
    let inUse = try await place.run(arguments, of: .sallyport)
    #expect(inUse.status == 71)
    #expect(inUse.errorLines.last?.hasSuffix("or set --port to another port") == true, "\(inUse.errors)")
    try await gate.stop()
  }

  @Test("A development gate refuses a folder with other files, and requires --folder without a home folder")
  func foreignFolder() async throws {
    let place = try Workplace()
    let folder = place.folder + "/notes"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    try Data("text".utf8).write(to: URL(fileURLWithPath: folder + "/a.txt"))
    let foreign = try await place.run(["dev", "--folder", folder], of: .sallyport)
    #expect(foreign.status == 73)
    #expect(foreign.errorLines.first?.hasPrefix("error: \(folder) is not empty") == true, "\(foreign.errors)")
    #expect(foreign.errorLines.last?.hasPrefix("hint: name an empty or new folder") == true)
    let homeless = try await place.run(["dev"], of: .sallyport, environment: ["HOME": "", "XDG_DATA_HOME": ""])
    #expect(homeless.status == 66)
    #expect(homeless.errorLines.last == "hint: name a folder with --folder", "\(homeless.errors)")
  }

  @Test("A failed handshake is reported with a hint")
  func noHandshake() async throws {
    let setup = try await GateSetup()
    let plain = try #require(setup.echo.firstLines.first).replacingOccurrences(of: "ws://", with: "wss://")
    let outcome = try await setup.attest("connect", plain, "--once", "x")
    #expect(outcome.status == 76)
    #expect(outcome.errorLines.last?.contains("does not speak TLS") == true, "\(outcome.errors)")
    let (gate, url) = try await setup.furtherGate(
      enforcement: "enforce",
      listen: #"{ address: 127.0.0.1, port: 0, proxy_protocol: v2, trusted_proxies: ["127.0.0.1"] }"#)
    defer { gate.kill() }
    let proxied = try await setup.attest("connect", url, "--once", "x")
    #expect(proxied.status == 76)
    #expect(proxied.errorLines.last?.contains("PROXY protocol") == true, "\(proxied.errors)")
  }

  @Test("A result that cannot be written is a failure")
  func lostOutput() async throws {
    let place = try Workplace()
    let (exit, _, errors) = try await ChildProcess.run(
      "/bin/sh", ["-c", #""$0" --help >/dev/null && "$0" device list --json >/dev/full"#, Program.attest.path],
      environment: place.environment.mapValues(Optional.some))
    #expect(exit == .code(74))
    #expect(errors.first == "error: standard output: No space left on device")
  }

  @Test("A signal during the start of a gate stops it, in order once it has reported readiness")
  func earlySignals() async throws {
    let place = try Workplace()
    for _ in 0..<10 {
      #expect(try await place.startGate(upstream: "ws://127.0.0.1:9", port: 0).stop() == 0)
    }
    // From before it opens its files until after it reports readiness.
    for milliseconds in stride(from: 0, to: 300, by: 10) {
      let gate = try await place.start(.sallyport, ["dev", "--upstream", "ws://127.0.0.1:9", "--port", "0"], lines: 0)
      try await Task.sleep(for: .milliseconds(milliseconds))
      // The exit code is 0, or absent because the signal killed the gate. In both cases the gate stops.
      #expect(try await gate.stop() ?? 0 == 0)
    }
  }

  @Test("The handshake is shown without usable credentials")
  func handshake() async throws {
    let setup = try await GateSetup()
    let outcome = try await setup.attest("connect", setup.url, "--once", "x", "--show-handshake", "--ping")
    #expect(outcome.output == "x\n")
    #expect(outcome.errors.contains("> GET / HTTP/1.1\n"))
    #expect(outcome.errors.contains("< HTTP/1.1 101\n"))
    #expect(outcome.errors.contains("\nping: "))
    let nonce = try #require(outcome.errorLines.first { $0.contains("Nonce") })
    #expect(nonce.hasSuffix("…") && nonce.count < 60)
  }

  @Test(
    "The certificate of a debug build opens a socket without a device",
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

    let setup = try await GateSetup(clientAuthority: files[0], in: place)
    let root = AuthorityFolder(path: setup.authority).tlsAuthorityPath
    let arguments = ["connect", setup.url, "--ca", root, "--once", "hello"]
    let outcome = try await place.run(arguments + ["--cert", files[1], "--key", files[2]])
    #expect(outcome == Outcome(status: 0, output: "hello\n", errors: ""))
    #expect(try !setup.store.exists("default"))
    let mismatch = try await place.run(arguments + ["--cert", files[0], "--key", files[2]])
    #expect(mismatch.status == 66)
  }

  @Test("A signal stops the echo server in order", arguments: [SIGINT, SIGTERM])
  func signals(signal: Int32) async throws {
    let place = try Workplace()
    let echo = try await place.start(.attest, ["echo", "--listen", "127.0.0.1:0"], lines: 1)
    #expect(try await echo.stop(signal) == 0)
  }

  @Test("A port in use is refused")
  func portInUse() async throws {
    let place = try Workplace()
    let echo = try await place.start(.attest, ["echo", "--listen", "127.0.0.1:0"], lines: 1)
    let address = try #require(echo.firstLines.first).dropFirst("ws://".count).dropLast()
    let outcome = try await place.run(["echo", "--listen", String(address)])
    #expect(outcome.status == 71)
    #expect(outcome.errorLines.last == "hint: another port: --listen 127.0.0.1:0")
  }

  @Test("Descriptors of standard streams that are closed at the start are not reused for sockets")
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
