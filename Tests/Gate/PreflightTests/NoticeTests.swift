import ByteCoding
import Cryptography
import Foundation
import Glibc
import GateRuntime
import SimulatedDevice
import TestSupport
import Testing

@Suite("Notices before a certificate ends, and the group of the admin socket")
struct NoticeTests {
  private func certificate(lifetime: Duration) throws -> Certificate {
    let key = try ECPrivateKey(.p256)
    return try CertificateTemplate(
      subject: DistinguishedName(.commonName("short")), subjectPublicKeyInfo: key.spki, notBefore: Bench.now,
      notAfter: Bench.now.advanced(by: lifetime)
    ).selfSigned(with: key)
  }

  @Test("The notice period is 14 days, or a third of a shorter lifetime", arguments: [(365, 14), (42, 14), (6, 2)])
  func period(_ lifetime: Int, _ expected: Int) throws {
    let certificate = try certificate(lifetime: Bench.day * lifetime)
    #expect(CertificateNotice.period(of: certificate) == Bench.day * expected)
    let begin = certificate.notAfter.advanced(by: Bench.day * -expected)
    #expect(!CertificateNotice.endsSoon(certificate, at: begin))
    #expect(CertificateNotice.endsSoon(certificate, at: begin.advanced(by: .seconds(1))))
  }

  @Test("An unknown group of the admin socket fails, and so does a folder that its members cannot enter")
  func group() async throws {
    try await Bench.with { bench in
      let socket = try ListeningSocket()
      func findings(_ group: String) async throws -> [String] {
        try await bench.findings(
          bench.settings(
            "admin: { listen: 'unix:\(bench.folder)/admin.sock', group: \(group) }\n"
              + "routes: [{ upstream: 'tcp://127.0.0.1:\(socket.port)' }]"))
      }
      let own = String(cString: try #require(getgrgid(getegid())).pointee.gr_name)
      #expect(try await findings("no-such-group") == ["failed: admin.group: there is no group no-such-group"])
      chmod(bench.folder, 0o700)
      #expect(try await findings(own) == ["warning: admin.group: members of \(own) cannot enter DIR"])
      chmod(bench.folder, 0o750)
      #expect(try await findings(own) == [])
    }
  }
}
