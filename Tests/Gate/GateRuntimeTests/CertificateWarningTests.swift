import ByteCoding
import Cryptography
import Foundation
import Logging
import Observability
import SimulatedDevice
import TestSupport
import Testing

@testable import GateRuntime

@Suite("Warnings of certificates that end")
struct CertificateWarningTests {
  private static let issued = Timestamp(seconds: 1_780_000_000)
  private static let day = Duration.seconds(86_400)

  /// The certificate of a development server, which is valid for a year, under two names.
  private func served() throws -> ServedCertificates {
    let authority = try TestAuthority(appID: "SALLYPORT1.com.example.app", at: Self.issued)
    let certificate = authority.server.certificate
    return ServedCertificates(
      certificates: [("server", certificate), ("client_ca", certificate)], files: .unreadable)
  }

  /// Returns the log lines of the warnings, `before` the end of the certificates.
  private func lines(_ before: Duration) async throws -> [[String: Any]] {
    let served = try served()
    let now = try #require(served.certificates.first).certificate.notAfter.advanced(by: .zero - before)
    return try await Places.withTemporaryFolder { folder in
      let path = folder + "/log"
      try Data().write(to: URL(fileURLWithPath: path))
      let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
      let sink = LineSink(descriptor: file.fileDescriptor)
      served.warn(Logger(label: "test") { JSONLineHandler(label: $0, sink: sink) }, at: now)
      sink.flush()
      return try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").map {
        try #require(JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
      }
    }
  }

  @Test("From 14 days before its end each served certificate causes a warning with the days as a number")
  func soon() async throws {
    #expect(try await lines(Self.day * 14 + .seconds(1)).isEmpty)
    let lines = try await lines(Self.day * 13 + .seconds(1))
    #expect(lines.map { $0["certificate"] as? String } == ["server", "client_ca"])
    for line in lines {
      #expect(line["message"] as? String == "certificate ends soon: renew it" && line["level"] as? String == "warning")
      #expect(line["days_left"] as? Int == 13)
    }
  }

  @Test("An expired certificate is reported as such")
  func ended() async throws {
    let lines = try await lines(.seconds(-1))
    #expect(lines.count == 2)
    for line in lines {
      #expect(line["message"] as? String == "certificate expired or not yet valid: clients cannot connect")
    }
  }

  @Test("The readiness text names the certificate and its end, and is absent before")
  func notice() throws {
    let served = try served()
    let end = try #require(served.certificates.first).certificate.notAfter
    #expect(served.notice(at: end.advanced(by: Self.day * -15)) == nil)
    #expect(served.notice(at: end.advanced(by: Self.day * -1)) == "server ends at \(end)")
    #expect(served.notice(at: end.advanced(by: Self.day)) == "server ended at \(end)")
  }

  @Test("A reminder is due once a day, also after a suspend, and after the clock was set back")
  func reminder() {
    var reminder = DailyReminder(last: Self.issued)
    func isDue(_ seconds: Int64) -> Bool { reminder.isDue(at: Self.issued.advanced(by: .seconds(seconds))) }
    #expect(!isDue(600) && !isDue(86_399))
    #expect(isDue(86_400))
    #expect(!isDue(86_401) && !isDue(86_400 * 2 - 1))
    #expect(isDue(86_400 * 9))
    #expect(!isDue(86_400 * 9 + 1))
    #expect(isDue(5))
  }
}
