import AttestClient
import ByteCoding
import Cryptography
import Foundation
import SimulatedDevice
import TestSupport
import Testing

@testable import attest

@Suite("Errors and hints of attest", .serialized)
struct HintTests {
  @Test("A client certificate that the gate refuses or does not request is reported", arguments: [true, false])
  func refusedCertificate(isRequested: Bool) async throws {
    let place = try Workplace()
    let authorities = try (0..<2).map { _ in try TestAuthority(appID: "AAABBBCCC1.com.example.app", at: .now()) }
    let client = try authorities[0].debugIdentity(.v3)
    let files = ["ca.pem", "client.crt", "client.key"].map { place.folder + "/" + $0 }
    let texts = [try authorities[1].tlsAuthority.certificate.pem, try client.certificate.pem, try client.key.pkcs8PEM]
    for (file, text) in zip(files, texts) { try Data(text.utf8).write(to: URL(fileURLWithPath: file)) }

    let setup = try await GateSetup(clientAuthority: isRequested ? files[0] : nil, in: place)
    let root = AuthorityFolder(path: setup.authority).tlsAuthorityPath
    let outcome = try await place.run(
      ["connect", setup.url, "--ca", root, "--once", "x", "--cert", files[1], "--key", files[2]])
    #expect(outcome.status == (isRequested ? 76 : 77))
    let message = isRequested ? "the gate refuses this client certificate: " : "401 no_credentials"
    #expect(outcome.errorLines.first?.contains(message) == true, "\(outcome.errors)")
    let hint = isRequested ? "hint: it has to be issued by" : "hint: the gate did not ask for a certificate"
    #expect(outcome.errorLines.last?.hasPrefix(hint) == true, "\(outcome.errors)")
  }

  @Test("A link code without characters is refused, and the gate is not asked", arguments: ["", " - "])
  func emptyLinkCode(code: String) async throws {
    let place = try Workplace()
    let outcome = try await place.run(
      ["enroll", "wss://localhost:1/", "--user", "ada", "--with", "sms", "--phone", "+15550100", "--link-code", code])
    #expect(outcome.status == 64, "\(outcome.errors)")
    #expect(outcome.errorLines.contains { $0.contains("--link-code is empty") }, "\(outcome.errors)")
  }

  @Test("A device of another app is detected without a request to the gate")
  func otherApp() async throws {
    let setup = try await GateSetup()
    let otherAuthority = setup.place.folder + "/other"
    _ = try AuthorityFolder(path: otherAuthority).loadOrMake(appID: "AAABBBCCC1.com.example.app", at: .now())
    _ = try await setup.place.run(["device", "new", "phone", "--authority", otherAuthority])
    let outcome = try await setup.attest("register", setup.url, "--device", "phone")
    #expect(outcome.status == 64)
    #expect(outcome.errorLines.first?.contains("phone runs AAABBBCCC1.com.example.app") == true, "\(outcome.errors)")
    #expect(outcome.errorLines.last?.hasPrefix("hint: --device NAME") == true)
  }

  @Test("A revoked key is reported with a hint how to restore it")
  func revoked() async throws {
    let setup = try await GateSetup()
    _ = try await setup.attest("register", setup.url)
    let keyID = try #require(try setup.record().keyID)
    let arguments = ["keys", "revoke", "-c", setup.authority + "/sallyport.yaml", keyID]
    let revocation = try await setup.place.run(arguments, of: .sallyport)
    #expect(revocation.status == 0, "\(revocation.errors)")
    let outcome = try await setup.attest("register", setup.url)
    #expect(outcome.status == 77)
    #expect(outcome.errorLines.last?.contains("`sallyport keys restore`") == true, "\(outcome.errors)")
  }

  @Test("A key stays in use until the gate has accepted the one that replaces it")
  func newKey() async throws {
    let setup = try await GateSetup()
    let first = try await setup.attest("register", setup.url)
    let otherAuthority = setup.place.folder + "/other"
    _ = try AuthorityFolder(path: otherAuthority).loadOrMake(appID: "SALLYPORT1.com.example.app", at: .now())
    let root = AuthorityFolder(path: otherAuthority).tlsAuthorityPath
    let failed = try await setup.attest("register", setup.url, "--new-key", "--ca", root)
    #expect(first.status == 0 && failed.status == 76, "\(failed.errors)")
    let kept = try await setup.attest("register", setup.url)
    #expect(kept == first)
    let second = try await setup.attest("register", setup.url, "--new-key")
    #expect(second.status == 0 && second.output != first.output, "\(second.errors)")
    let known = try await setup.attest("register", setup.url)
    #expect(known == second)
  }

  @Test("A damaged key is reported by name, as invalid data")
  func damagedKey() async throws {
    let setup = try await GateSetup()
    _ = try await setup.attest("register", setup.url)
    let folder = try setup.store.keysFolder("default")
    let name = try #require(try FileManager.default.contentsOfDirectory(atPath: folder).first)
    try Data("{".utf8).write(to: URL(fileURLWithPath: "\(folder)/\(name)"))
    let outcome = try await setup.attest("headers", setup.url)
    #expect(outcome.status == 65)
    #expect(outcome.errorLines.first?.hasSuffix("\(name) is not a key") == true, "\(outcome.errors)")
  }

  @Test("A name that is not in the gate's certificate is distinguished from an unknown authority")
  func otherName() async throws {
    let setup = try await GateSetup()
    // Another notation of 127.0.0.1, which the certificate contains.
    let url = setup.url.replacingOccurrences(of: "localhost", with: "[::ffff:127.0.0.1]")
    let outcome = try await setup.attest("connect", url, "--once", "x")
    #expect(outcome.status == 76)
    #expect(
      outcome.errorLines.last?.hasPrefix("hint: name the gate as its certificate does") == true, "\(outcome.errors)")
  }
}
