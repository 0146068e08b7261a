import AttestGate
import ByteCoding
import GateFixtures
import Testing
import Transport

@testable import GateService

/// Sockets of debug builds, which a client certificate admits.
@Suite("A socket does not outlast its client certificate")
struct CertificateSessionTests {
  private let bench: GateBench
  private let service: ServiceBench

  init() throws {
    bench = try GateBench()
    service = try ServiceBench(bench)
  }

  private func order(_ subject: String, expiresIn rest: Duration = .seconds(31_536_000)) async throws -> any RelayPlan {
    let certificate = PeerCertificate(
      der: [1], fingerprint: [2], subject: subject, expiresAt: bench.clock.now.advanced(by: rest),
      authorities: [PeerCertificate.authority])
    return try await service.order(
      for: .upgrade([]), from: Peer(address: ServiceBench.peer.address, verifiedCertificate: certificate))
  }

  @Test("Its greatest age is the rest of the certificate's validity, or that of the settings if it is shorter")
  func age() async throws {
    let ofSettings = try #require(SessionLimits().maxAge)
    #expect(try await order("CN=a").limits.maxAge == ofSettings)
    let age = try #require(try await order("CN=a", expiresIn: .seconds(3600)).limits.maxAge)
    #expect(age <= .seconds(3600) && age > .seconds(1800))
    #expect(try await order("CN=a", expiresIn: .seconds(-1)).limits.maxAge == .zero)
  }

  @Test("A reload closes the sockets of the certificates that it no longer accepts, and no other")
  func reload() async throws {
    let device = try await bench.registeredDevice()
    let orders = [
      try await order("CN=a"), try await order("CN=b"),
      try await service.order(for: .upgrade(device.fields(over: bench.nonce(), count: 1))),
    ]
    defer { withExtendedLifetime(orders) {} }
    let recorders = orders.map { _ in CloseRecorder() }
    for (order, recorder) in zip(orders, recorders) { order.opened(recorder.control) }
    #expect(service.sessions.closeCertificates { $0.subject != "CN=a" } == 1)
    #expect(recorders.map(\.codes) == [[.revoked], [], []])
    // The device's key is no certificate.
    #expect(service.sessions.closeCertificates { _ in false } == 2)
    #expect(recorders.last?.codes == [])
  }

  @Test("The sockets of all certificates, and no other, can be closed with a code")
  func all() async throws {
    let device = try await bench.registeredDevice()
    let orders = [
      try await order("CN=a"), try await service.order(for: .upgrade(device.fields(over: bench.nonce(), count: 1))),
    ]
    defer { withExtendedLifetime(orders) {} }
    let recorders = orders.map { _ in CloseRecorder() }
    for (order, recorder) in zip(orders, recorders) { order.opened(recorder.control) }
    #expect(service.sessions.closeCertificates(.serviceRestart, reason: "upgraded") == 1)
    #expect(recorders.map(\.codes) == [[.serviceRestart], []])
  }

  @Test("A certificate that is refused while its upgrade is decided or opened admits no socket")
  func during() async throws {
    let order = try await order("CN=a")
    #expect(order.refusal() == nil)
    service.sessions.closeCertificates { $0.authorities.isDisjoint(with: [PeerCertificate.authority]) }
    service.sessions.closeCertificates(.serviceRestart, reason: "upgraded")
    let refusal = try #require(order.refusal())
    #expect(refusal.status == 403 && refusal.headers.first("X-Attest-Error") == "certificate_refused")
    let epoch = service.sessions.revocationEpoch()
    let admission = try await bench.gate.admit(
      AdmissionClaim(
        AssertionClaim(.upgrade([])), certificate: PeerCertificate(der: [1], fingerprint: [2], subject: "CN=b")))
    let record = SessionRecord(id: "x", admission: admission, address: ServiceBench.peer.address, route: "/")
    service.sessions.closeCertificates { _ in false }
    let recorders = [CloseRecorder(), CloseRecorder()]
    let sessions = [
      try service.sessions.add(record, since: epoch, atMost: 5),
      // Decided by the configuration of the reload: the rule has spoken already.
      try service.sessions.add(record, since: service.sessions.revocationEpoch(), atMost: 5),
    ]
    for (session, recorder) in zip(sessions, recorders) { session.opened(recorder.control) }
    #expect(recorders.map(\.codes) == [[.revoked], []])
  }
}
