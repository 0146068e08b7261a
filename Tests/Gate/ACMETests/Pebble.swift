import ACME
import ByteCoding
import Foundation
import Locking
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

/// A `pebble`, the ACME server of Let's Encrypt for tests, with its random failures on. It resolves every name to
/// loopback.
struct Pebble: Sendable {
  /// The configuration of a pebble.
  struct Plan: Sendable {
    /// The port at which it validates TLS-ALPN-01 challenges.
    var validatesAt: UInt16
    /// The port at which it validates HTTP-01 challenges.
    var readsAt: UInt16 = 1
    /// The port of the DNS server that it asks; `nil` for one that resolves every name to loopback.
    var asksAt: UInt16?
    /// The lifetime of certificates in seconds.
    var lifetime = 3600
    /// Names that it refuses.
    var refused: [String] = []
    /// The keys for external account binding; if there are any, one is required.
    var bindings: [String: String] = [:]
    /// The percentage of good nonces that it refuses.
    var refusedNonces = 30
    /// The port at which it listens, for a pebble in the place of another one.
    var port: UInt16?

    init(validatesAt port: UInt16) { validatesAt = port }
  }

  let process: ChildProcess
  let resolver: ChildProcess
  let port: UInt16
  /// The authority of pebble's own certificate.
  let authorityFile: String
  private let managementPort: UInt16
  /// The port at which its DNS server learns records, by HTTP.
  let recordPort: UInt16

  var directory: String { "https://localhost:\(port)/dir" }

  init(_ plan: Plan, _ folder: AuthorityFolder) async throws {
    authorityFile = folder.tlsAuthorityPath
    let dns = try Places.freePort()
    recordPort = try Places.freePort()
    (port, managementPort) = (try plan.port ?? Places.freePort(), try Places.freePort())
    let configuration: [String: Any] = [
      "pebble": [
        "listenAddress": "127.0.0.1:\(port)", "managementListenAddress": "127.0.0.1:\(managementPort)",
        "certificate": folder.serverCertificatePath, "privateKey": folder.serverKeyPath,
        "httpPort": Int(plan.readsAt), "tlsPort": Int(plan.validatesAt), "certificateValidityPeriod": plan.lifetime,
        "domainBlocklist": plan.refused, "externalAccountBindingRequired": !plan.bindings.isEmpty,
        "externalAccountMACKeys": plan.bindings,
      ] as [String: Any]
    ]
    let file = "\(folder.path)/pebble-\(port).json"
    try JSONSerialization.data(withJSONObject: configuration).write(to: URL(fileURLWithPath: file))
    resolver = try ChildProcess(
      Places.tool("pebble-challtestsrv"),
      [
        "-dns01", "127.0.0.1:\(dns)", "-defaultIPv6", "", "-http01", "", "-https01", "", "-tlsalpn01", "",
        "-management", "127.0.0.1:\(recordPort)",
      ])
    process = try ChildProcess(
      Places.tool("pebble"), ["-config", file, "-dnsserver", "127.0.0.1:\(plan.asksAt ?? dns)", "-strict"],
      environment: ["PEBBLE_VA_NOSLEEP": "1", "PEBBLE_WFE_NONCEREJECT": "\(plan.refusedNonces)"])
    _ = try await process.output.first("pebble's directory") { $0.contains("ACME directory available") }
    // It says so before it listens.
    for port in [port, managementPort] { try await awaitListener(at: port) }
  }

  private func awaitListener(at port: UInt16) async throws {
    let client = try ClientEngine()
    let end = ContinuousClock.now + .seconds(120)
    while true {
      do throws(ClientError) {
        _ = try await client.connect(host: "127.0.0.1", port: port, tls: nil)
        return
      } catch {
        try #require(!process.hasEnded, "pebble has ended")
        guard .now < end else { throw error }
        try await Task.sleep(for: .milliseconds(20))
      }
    }
  }

  /// Calls `body` with a pebble, and stops it afterwards.
  static func serving<R>(
    _ plan: Plan, _ folder: AuthorityFolder, _ body: (Pebble) async throws -> R
  ) async throws -> R {
    let pebble = try await Pebble(plan, folder)
    defer { pebble.stop() }
    return try await body(pebble)
  }

  func stop() {
    process.kill()
    resolver.kill()
  }

  /// Writes the root of the issued certificates to a file and returns its path.
  func root(in folder: AuthorityFolder) async throws -> String {
    let client = try ClientEngine()
    let connection = try await client.connect(
      host: "localhost", port: managementPort, tls: ClientTLS(authorityFile: authorityFile))
    let answer = try await connection.send(
      "GET", "/roots/0", headers: HeaderFields([.init(name: "Host", value: "localhost:\(managementPort)")]))
    let file = "\(folder.path)/pebble-root.pem"
    try Data(answer.body).write(to: URL(fileURLWithPath: file))
    return file
  }
}

/// An HTTPS proxy in front of a pebble, which can do what pebble cannot: rate limits, renewal information, a wrong
/// clock. Pebble takes its own address from `Host`, so that all its URLs lead through the proxy.
final class FrontOfPebble: RequestResponder {
  /// Answers instead of pebble; `nil` lets pebble answer.
  typealias Answer = @Sendable (Request) -> Response?
  /// Changes an answer of pebble.
  typealias Change = @Sendable (Request, Response) -> Response

  private let pebble: Pebble
  private let client: ClientEngine
  private let tls: ClientTLS
  private let answer = LockedValue<Answer>({ _ in nil })
  private let change = LockedValue<Change>({ $1 })
  /// The requests so far: method and path.
  let requests = LockedValue<[String]>([])
  private let placed = LockedValue(0)

  private init(_ pebble: Pebble) throws {
    self.pebble = pebble
    client = try ClientEngine()
    tls = try ClientTLS(authorityFile: pebble.authorityFile)
  }

  /// Calls `body` with the proxy and the URL of its directory.
  static func serving<R>(
    _ pebble: Pebble, _ folder: AuthorityFolder, _ body: (FrontOfPebble, _ directory: String) async throws -> R
  ) async throws -> R {
    let front = try FrontOfPebble(pebble)
    let engine = try Engine(
      listeningAt: .ipv4([127, 0, 0, 1], port: 0), loops: 1,
      tls: ServerTLS(.init(certificateFile: folder.serverCertificatePath, keyFile: folder.serverKeyPath)),
      responder: front)
    defer { engine.stop() }
    return try await body(front, "https://localhost:\(engine.address.port)/dir")
  }

  /// The orders that were placed and not refused because of their nonce.
  var orders: Int { placed.withLock(\.self) }

  func answers(_ answer: @escaping Answer) { self.answer.withLock { $0 = answer } }
  func changes(_ change: @escaping Change) { self.change.withLock { $0 = change } }

  func respond(to request: Request, from peer: Peer) async -> Disposition {
    requests.withLock { $0.append("\(request.method) \(request.path)") }
    if let own = answer.withLock(\.self)(request) { return .respond(own) }
    do {
      let connection = try await client.connect(host: "localhost", port: pebble.port, tls: tls)
      let kept = ["host", "content-type", "accept", "user-agent"]
      let fields = request.headers.fields.filter { kept.contains($0.name.lowercased()) }
      let response = try await connection.send(
        request.method, request.target, headers: HeaderFields(fields), body: request.body)
      if request.path == "/order-plz", response.status == 201 { placed.withLock { $0 += 1 } }
      let passed = ["replay-nonce", "location", "link", "content-type", "retry-after"]
      let headers = response.headers.fields.filter { passed.contains($0.name.lowercased()) }
      let plain = Response(status: response.status, headers: HeaderFields(headers), body: response.body)
      return .respond(change.withLock(\.self)(request, plain))
    } catch {
      return .respond(Response(status: 502, body: Array("\(error)".utf8)))
    }
  }

  func response(to fault: RequestError, of headers: HeaderFields?, id: String, from peer: Peer) -> Response {
    Response(status: 400, closes: true)
  }
}
