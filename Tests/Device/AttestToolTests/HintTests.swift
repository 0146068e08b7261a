import AttestClient
import ByteCoding
import Cryptography
import Foundation
import SimulatedDevice
import TestSupport
import Testing

@testable import AttestTool

@Suite("What attest says is wrong, and what to do", .serialized)
struct HintTests {
  @Test("a certificate that the gate does not take, or does not ask for, is said to be that", arguments: [true, false])
  func refusedCertificate(asks: Bool) async throws {
    let place = try Workplace()
    let strangers = try (0..<2).map { _ in try TestAuthority(appID: "AAABBBCCC1.com.example.app", at: .now()) }
    let client = try strangers[0].debugIdentity(.v3)
    let files = ["ca.pem", "client.crt", "client.key"].map { place.folder + "/" + $0 }
    let texts = [try strangers[1].tlsAuthority.certificate.pem, try client.certificate.pem, try client.key.pkcs8PEM]
    for (file, text) in zip(files, texts) { try Data(text.utf8).write(to: URL(fileURLWithPath: file)) }

    let house = try await GateSetup(clientAuthority: asks ? files[0] : nil, in: place)
    let root = AuthorityFolder(path: house.authority).tlsAuthorityPath
    let outcome = try await place.run(
      ["connect", house.url, "--ca", root, "--once", "x", "--cert", files[1], "--key", files[2]])
    #expect(outcome.status == (asks ? 76 : 77))
    let said = asks ? "the gate refuses this client certificate: " : "401 no_credentials"
    #expect(outcome.complaints.first?.contains(said) == true, "\(outcome.errors)")
    let hint = asks ? "hint: it has to be issued by" : "hint: the gate did not ask for a certificate"
    #expect(outcome.complaints.last?.hasPrefix(hint) == true, "\(outcome.errors)")
  }

  @Test("a device of another app is told apart before the gate is asked")
  func otherApp() async throws {
    let house = try await GateSetup()
    let stranger = house.place.folder + "/stranger"
    _ = try AuthorityFolder(path: stranger).loadOrMake(appID: "AAABBBCCC1.com.example.app", at: .now())
    _ = try await house.place.run(["device", "new", "phone", "--authority", stranger])
    let outcome = try await house.attest("register", house.url, "--device", "phone")
    #expect(outcome.status == 64)
    #expect(outcome.complaints.first?.contains("phone runs AAABBBCCC1.com.example.app") == true, "\(outcome.errors)")
    #expect(outcome.complaints.last?.hasPrefix("hint: --device NAME") == true)
  }

  @Test("a key that is revoked is said to be restorable, also where it is only asked about")
  func revoked() async throws {
    let house = try await GateSetup()
    _ = try await house.attest("register", house.url)
    let keyID = try #require(try house.record().keyID)
    let arguments = ["keys", "revoke", "-c", house.authority + "/sallyport.yaml", keyID]
    let revocation = try await house.place.run(arguments, of: .sallyport)
    #expect(revocation.status == 0, "\(revocation.errors)")
    let outcome = try await house.attest("register", house.url)
    #expect(outcome.status == 77)
    #expect(outcome.complaints.last?.contains("`sallyport keys restore`") == true, "\(outcome.errors)")
  }

  @Test("a damaged key is bad data, and named")
  func damagedKey() async throws {
    let house = try await GateSetup()
    _ = try await house.attest("register", house.url)
    let folder = try house.store.keysFolder("default")
    let name = try #require(try FileManager.default.contentsOfDirectory(atPath: folder).first)
    try Data("{".utf8).write(to: URL(fileURLWithPath: "\(folder)/\(name)"))
    let outcome = try await house.attest("headers", house.url)
    #expect(outcome.status == 65)
    #expect(outcome.complaints.first?.hasSuffix("\(name) is not a key") == true, "\(outcome.errors)")
  }

  @Test("a name that the gate's certificate lacks is told from an authority that is not known")
  func otherName() async throws {
    let house = try await GateSetup()
    // Another way to write 127.0.0.1, which the certificate has.
    let url = house.url.replacingOccurrences(of: "localhost", with: "[::ffff:127.0.0.1]")
    let outcome = try await house.attest("connect", url, "--once", "x")
    #expect(outcome.status == 76)
    #expect(
      outcome.complaints.last?.hasPrefix("hint: name the gate as its certificate does") == true, "\(outcome.errors)")
  }
}
