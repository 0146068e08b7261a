import ACME
import ByteCoding
import Foundation
import Locking
import SimulatedDevice
import TestSupport
import Transport
import TransportEngine

/// A clock that the test sets, next to the system's.
final class ShiftedClock: Sendable {
  private let shift = LockedValue(Duration.zero)
  var clock: WallClock { WallClock { [self] in Timestamp.now().advanced(by: shift.withLock(\.self)) } }
  func advance(by duration: Duration) { shift.withLock { $0 += duration } }
}

/// A listener on loopback whose certificate a keeper keeps, as in a gate.
final class KeeperBench: Sendable {
  let engine: Engine
  let folder: AuthorityFolder
  let path: String
  let clock = ShiftedClock()
  let events = LockedValue<[CertificateEvent]>([])
  let status = LockedValue(CertificateStatus())
  private let responder = ChallengeResponder()
  private let answers = EmptyAnswers()
  let isDeaf = LockedValue(false)
  /// Whether the listener fails to present certificates.
  let cannotServe = LockedValue(false)

  private init(_ path: String) throws {
    self.path = path
    folder = AuthorityFolder(path: path)
    _ = try folder.loadOrMake(appID: "SALLYPORT1.com.example.app", at: .now())
    engine = try Engine(
      listeningAt: .ipv4([127, 0, 0, 1], port: 0), loops: 1, tls: ServerTLS([], challenges: responder),
      responder: answers)
  }

  static func serving<R>(_ body: (KeeperBench) async throws -> R) async throws -> R {
    try await Places.withTemporaryFolder { path in
      let bench = try KeeperBench(path)
      defer { bench.engine.stop() }
      return try await body(bench)
    }
  }

  var plan: Pebble.Plan { Pebble.Plan(validatesAt: engine.address.port) }
  var storage: CertificateFolder { CertificateFolder(path: path + "/acme") }

  func keeper(
    _ directory: String, names: [String] = ["gate.example"], binding: ExternalAccountBinding? = nil,
    email: String? = "ops@example.com", authorityFile: String? = nil, storage: (any CertificateStorage)? = nil,
    _ change: (inout CertificateOrderSettings) -> Void = { _ in }
  ) throws -> CertificateKeeper {
    var world = CertificateKeeper.Surroundings()
    world.clock = clock.clock
    world.random = { 0.5 }
    var order = CertificateOrderSettings(directory: directory, names: names, email: email, binding: binding)
    change(&order)
    return CertificateKeeper(
      order,
      client: ACMEClient(
        directory: directory, transport: try EngineTransport(authorityFile: authorityFile ?? folder.tlsAuthorityPath),
        clock: clock.clock),
      storage: storage ?? self.storage,
      listener: .init(
        serve: { [self] certificate in
          guard !cannotServe.withLock(\.self) else { return false }
          let material = CertificateMaterial(chainPEM: certificate.chainPEM, keyPEM: certificate.keyPEM)
          guard let tls = try? ServerTLS([material], challenges: responder) else { return false }
          return (try? await engine.replace(responder: answers, tls: tls)) != nil
        },
        answer: { [self] answers in
          guard !isDeaf.withLock(\.self) else { return }
          try? responder.answer(
            answers.digests.reduce(into: [:]) { challenges, entry in
              let made = try? ChallengeCertificate.make(for: entry.key, digest: entry.value, at: .now())
              challenges[ChallengeCertificate.serverName(for: entry.key)] = made.map {
                .init(chainPEM: $0.certificatePEM, keyPEM: $0.keyPEM)
              }
            })
        },
        note: { [self] event in events.withLock { $0.append(event) } },
        status: { [self] status in self.status.withLock { $0 = status } }),
      surroundings: world)
  }

  /// The errors of failed attempts so far.
  var failures: [ACMEError] {
    events.withLock { events in
      events.compactMap { event -> ACMEError? in
        if case .failed(let error, _, _, _) = event { error } else { nil }
      }
    }
  }

  /// The certificates that were obtained so far.
  var obtained: [IssuedCertificate] {
    events.withLock { events in
      events.compactMap { event -> IssuedCertificate? in
        if case .obtained(let certificate, _, _) = event { certificate } else { nil }
      }
    }
  }

  /// Opens a TLS connection as a client that trusts `root`.
  func connect(_ name: String = "gate.example", trusting root: String) async throws(ClientError) -> ClientConnection {
    let tls: ClientTLS
    do { tls = try ClientTLS(authorityFile: root) } catch { throw .untrusted("\(error)") }
    return try await ClientEngine().connect(
      host: "127.0.0.1", port: engine.address.port, tls: tls, verifying: name)
  }
}

private struct EmptyAnswers: RequestResponder {
  func respond(to request: Request, from peer: Peer) async -> Disposition { .respond(Response(status: 204)) }
  func response(to fault: RequestError, of headers: HeaderFields?, id: String, from peer: Peer) -> Response {
    Response(status: 400, closes: true)
  }
}
