import AndroidKeyAttestation
import AttestClient
import ByteCoding
import Commands
import Cryptography
import Foundation
import SimulatedDevice
import TestSupport
import Testing

@testable import attest

/// What `sallyport verify` says.
private struct Verdict: Equatable {
  let status: Int32
  /// The rules that are broken.
  let broken: [String]

  static let accepted = Verdict(status: 0, broken: [])
}

/// A user's folder with an authority and no gate.
private struct Offline {
  static let appID = "SALLYPORT1.com.example.app"
  static let nonce = String(repeating: "a5", count: 32)
  static let otherNonce = String(repeating: "5a", count: 32)

  let place: Workplace
  let authority: String

  init() throws {
    place = try Workplace()
    authority = place.folder + "/authority"
    _ = try AuthorityFolder(path: authority).loadOrMake(appID: Self.appID, at: .now())
  }

  func attest(_ arguments: String..., input: String = "") async throws -> Outcome {
    try await place.run(arguments + ["--authority", authority], input: input)
  }

  /// The output of a command that has to succeed, without the line end.
  func line(_ arguments: String...) async throws -> String {
    let outcome = try await place.run(arguments + ["--authority", authority])
    try #require(outcome.status == 0, "\(outcome)")
    return outcome.output.trimmingCharacters(in: .newlines)
  }

  /// Runs `sallyport verify` and returns its exit status and the rules that are broken.
  func verify(_ arguments: String..., input: String = "") async throws -> Verdict {
    struct Report: Decodable {
      struct Step: Decodable { let name, result: String }
      let steps: [Step]
    }
    let outcome = try await place.run(["verify"] + arguments + ["--json"], of: .sallyport, input: input)
    let report = try JSONDecoder().decode(Report.self, from: Data(outcome.output.utf8))
    return Verdict(status: outcome.status, broken: report.steps.filter { $0.result == "broken" }.map(\.name))
  }

  var roots: [String] {
    ["--root", authority + "/attestation-root.pem", "--root", authority + "/receipt-root.pem"]
  }

  /// The content of a file in the user's folder.
  func file(_ name: String) throws -> [UInt8] { try [UInt8](Data(contentsOf: URL(fileURLWithPath: path(name)))) }
  func path(_ name: String) -> String { place.folder + "/" + name }
}

private struct AttestationJSON: Decodable {
  let keyId: String
  let attestation: String?
  let chain: [String]?
  let nonce: String?
  let clientDataHash: String?
  let publicKey: String
  let platform: String
  let app: String
}

@Suite("attest attestation and assertion")
struct PrimitiveTests {
  @Test func `the body of an attestation keeps every rule, and none of another nonce`() async throws {
    let user = try Offline()
    let body = try await user.line("attestation", "--nonce", Offline.nonce)
    #expect(body.hasPrefix(#"{"keyId":""#) && body.hasSuffix(#","nonce":"\#(Offline.nonce)"}"#))
    func verify(_ body: String) async throws -> Verdict {
      try await user.verify(
        "attestation", "-", "--app-id", Offline.appID, user.roots[0], user.roots[1], user.roots[2], user.roots[3],
        input: body)
    }
    #expect(try await verify(body) == .accepted)
    #expect(
      try await verify(body.replacing(Offline.nonce, with: Offline.otherNonce))
        == Verdict(status: 1, broken: ["nonce", "receipt_client_data_hash"]))
  }

  @Test func `the headers of an assertion keep every rule, and each has the next counter`() async throws {
    let user = try Offline()
    _ = try await user.line("attestation", "--nonce", Offline.nonce)
    let key = try await user.line("device", "show", "default", "--public-key", "x963")
    for (counter, last) in [(1, "0"), (2, "1")] {
      let headers = try await user.line("assertion", "--nonce", Offline.nonce)
      #expect(headers.split(separator: "\n").count == 3)
      func verify(_ headers: String) async throws -> Verdict {
        try await user.verify(
          "assertion", "-", "--app-id", Offline.appID, "--public-key", key, "--counter", last, input: headers)
      }
      #expect(try await verify(headers) == .accepted, "\(counter)")
      #expect(
        try await verify(headers.replacing(Offline.nonce, with: Offline.otherNonce))
          == Verdict(status: 1, broken: ["signature"]))
    }
    let json = try await user.line("assertion", "--nonce", Offline.nonce, "--json")
    #expect(json.contains(#""counter":3"#) && json.contains(#""X-App-Assert-Nonce":"\#(Offline.nonce)""#))
    let again = try await user.verify(
      "assertion", "-", "--app-id", Offline.appID, "--public-key", key, "--counter", "2", input: json)
    #expect(again == .accepted)
  }

  @Test func `a client data hash is signed as it is given`() async throws {
    let user = try Offline()
    let hash = Hex.encode(SHA256.hash(Array("another server".utf8)))
    let made = try await user.line("attestation", "--client-data-hash", hash, "--json")
    let attestation = try JSONDecoder().decode(AttestationJSON.self, from: Data(made.utf8))
    #expect(attestation.clientDataHash == hash && attestation.nonce == nil)
    let object = try #require(attestation.attestation)
    #expect(
      try await user.verify(
        "attestation", "-", "--app-id", Offline.appID, "--key-id", attestation.keyId, "--client-data-hash", hash,
        user.roots[0], user.roots[1], user.roots[2], user.roots[3], input: object) == .accepted)
    #expect(try await user.line("assertion", "--client-data-hash", hash, "--cbor", user.path("proof.cbor")) == "")
    for (hash, expected) in [(hash, Int32(0)), (String(repeating: "00", count: 32), 1)] {
      let result = try await user.verify(
        "assertion", user.path("proof.cbor"), "--app-id", Offline.appID, "--public-key", attestation.publicKey,
        "--counter", "0", "--client-data-hash", hash)
      #expect(result.status == expected)
    }
  }

  @Test func `an object in a file is the one that the body has`() async throws {
    let user = try Offline()
    #expect(try await user.line("attestation", "--nonce", Offline.nonce, "--cbor", user.path("object.cbor")) == "")
    let keyID = try await user.line("device", "show", "default", "--json")
    let object = try user.file("object.cbor")
    #expect(object.first == 0xA3 && keyID.contains("keyId"))
    let piped = try await user.place.run(
      ["attestation", "--nonce", Offline.nonce, "--cbor", "-", "--authority", user.authority])
    #expect(piped.status == 0)
    let missing = try await user.attest("attestation", "--nonce", Offline.nonce, "--cbor", "/nowhere/object.cbor")
    #expect(missing.status == 73 && missing.errorLines.count == 2)
  }

  @Test(arguments: ["nowhere/object.cbor", "authority"])
  func `a file that cannot be written uses up no key and no counter`(name: String) async throws {
    let user = try Offline()
    let made = try await user.line("attestation", "--nonce", Offline.nonce, "--json")
    let keyID = try JSONDecoder().decode(AttestationJSON.self, from: Data(made.utf8)).keyId
    for command in ["attestation", "assertion"] {
      let outcome = try await user.attest(command, "--nonce", Offline.nonce, "--cbor", user.path(name))
      #expect(outcome.status == 73 && outcome.output.isEmpty, "\(outcome)")
      #expect(outcome.errorLines.count == 2 && outcome.errorLines[0].contains(user.path(name) + ": "), "\(outcome)")
    }
    #expect(try await user.line("assertion", "--nonce", Offline.nonce, "--json").contains(#""counter":1"#))
    #expect(try await user.line("assertion", "--nonce", Offline.nonce).contains("KeyId: \(keyID)\n"))
    let keys = try DeviceStore(environment: user.place.environment).keysFolder("default")
    #expect(try FileManager.default.contentsOfDirectory(atPath: keys).count { $0.hasSuffix(".json") } == 1)
  }

  @Test func `an Android device attests the nonce, and signs it`() async throws {
    let user = try Offline()
    let made = try await user.line("attestation", "--platform", "android", "--nonce", Offline.nonce, "--json")
    let attestation = try JSONDecoder().decode(AttestationJSON.self, from: Data(made.utf8))
    #expect(attestation.platform == "android" && attestation.app == "com.example.app")
    #expect(attestation.attestation == nil && attestation.clientDataHash == nil)
    let chain = try #require(attestation.chain)
    func verify(_ file: String, _ nonce: String, input: String = "") async throws -> [String] {
      try await user.verify(
        "android", file, "--package", "com.example.app", "--signer",
        Hex.encode(AndroidApp(appID: Offline.appID).signer), "--challenge",
        Base64.encode(try #require(Hex.decode(nonce))), "--root", user.authority + "/android-root.pem", input: input
      ).broken
    }
    let array = JSONText.encoding(chain)
    #expect(try await verify("-", Offline.nonce, input: array) == [])
    #expect(try await verify("-", Offline.otherNonce, input: array) == ["challenge_differs"])

    let proof = try await user.line("assertion", "--platform", "android", "--nonce", Offline.nonce, "--json")
    let fields = try JSONDecoder().decode([String: String].self, from: Data(proof.utf8))
    #expect(fields["counter"] == nil && fields["X-App-Assert-KeyId"] == attestation.keyId)
    let key = try P256PublicKey(x963: #require(Base64.decode(attestation.publicKey)))
    let signature = try #require(fields["X-App-Assert-Data"].flatMap { Base64.decode($0) })
    for (nonce, isValid) in [(Offline.nonce, true), (Offline.otherNonce, false)] {
      let message = AndroidKeyProof.message(nonce: try #require(Hex.decode(nonce)), publicKey: key)
      #expect(key.isValidSignature(signature, for: message) == isValid)
    }
    let body = try await user.line("attestation", "--platform", "android", "--nonce", Offline.nonce, "--body")
    #expect(body.hasPrefix(#"{"platform":"android","chain":["#))
    _ = try await user.line("attestation", "--device", "android", "--nonce", Offline.nonce, "--pem", user.path("c.pem"))
    #expect(try await verify(user.path("c.pem"), Offline.nonce) == [])
  }

  @Test func `an assertion is by the key that was attested last, or by the one that is named`() async throws {
    let user = try Offline()
    let none = try await user.attest("assertion", "--nonce", Offline.nonce)
    #expect(none.status == 66 && none.errorLines.first == "error: the device default has no attested key")
    var keys: [String] = []
    for _ in 0..<2 {
      let made = try await user.line("attestation", "--nonce", Offline.nonce, "--json")
      keys.append(try JSONDecoder().decode(AttestationJSON.self, from: Data(made.utf8)).keyId)
    }
    #expect(try await user.line("assertion", "--nonce", Offline.nonce).contains("KeyId: \(keys[1])\n"))
    let named = try await user.line("assertion", "--nonce", Offline.nonce, "--key", keys[0])
    #expect(named.contains("KeyId: \(keys[0])\n"))
    let unknown = try await user.attest("assertion", "--nonce", Offline.nonce, "--key", "AAAA")
    #expect(unknown.status == 66 && unknown.output.isEmpty && unknown.errorLines.count == 2)
    // Without the record of the last one, two keys are ambiguous.
    let store = try DeviceStore(environment: user.place.environment)
    try FileManager.default.removeItem(atPath: store.folder("default") + "/last-key.json")
    let ambiguous = try await user.attest("assertion", "--nonce", Offline.nonce)
    #expect(ambiguous.status == 64 && ambiguous.errorLines.last?.hasPrefix("hint: --key names one") == true)
  }

  @Test(arguments: [
    (["--nonce", "abc"], "--nonce abc: 3 digits, an odd number"),
    (["--nonce", "zz"], "--nonce zz: character 1 is not a hex digit"),
    (["--nonce", "a5 5a"], "--nonce a5 5a: character 3 is not a hex digit"),
    (["--nonce", "é5"], "--nonce é5: character 1 is not a hex digit"),
    (["--nonce", ""], "--nonce without digits: 0 bytes"),
    (["--nonce", String(repeating: "a5", count: 65)], "…: 65 bytes"),
    (["--client-data-hash", String(repeating: "a5", count: 31), "--json"], "31 bytes"),
    (["--client-data-hash", String(repeating: "a5", count: 33), "--json"], "33 bytes"),
    (["--client-data-hash", "0", "--json"], "--client-data-hash 0: 1 digits, an odd number"),
  ])
  func `a value that is no hash and no nonce is named, and makes no device`(
    arguments: [String], message: String
  ) async throws {
    let user = try Offline()
    for command in ["attestation", "assertion"] {
      let outcome = try await user.place.run([command] + arguments + ["--authority", user.authority])
      #expect(outcome.status == 65 && outcome.output.isEmpty)
      #expect(outcome.errorLines.count == 2 && outcome.errorLines[0].hasPrefix("error: --"), "\(outcome)")
      #expect(outcome.errorLines[0].contains(message) && outcome.errorLines[1].hasPrefix("hint: "), "\(outcome)")
    }
    #expect(try await user.line("device", "list") == "")
  }

  @Test(arguments: [
    ["attestation"], ["assertion"], ["attestation", "--nonce", "a5", "--client-data-hash", "a5"],
    ["attestation", "--nonce", "a5", "--json", "--body"],
    ["attestation", "--nonce", "a5", "--cbor", "x", "--pem", "y"],
    ["assertion", "--nonce", "a5", "--json", "--headers"], ["assertion", "--client-data-hash", "a5", "--headers"],
    ["attestation", "--client-data-hash", "a5"], ["attestation", "--nonce", "a5", "--pem", "x"],
    ["attestation", "--nonce", "a5", "--cbor", "x", "--platform", "android"],
    ["attestation", "--platform", "android", "--json", "--client-data-hash", String(repeating: "a5", count: 32)],
    ["device", "show", "default", "--key", "AAAA"], ["device", "show", "default", "--json", "--public-key", "jwk"],
  ])
  func `options that do not fit together are refused before a key is made`(arguments: [String]) async throws {
    let user = try Offline()
    let outcome = try await user.place.run(arguments + ["--authority", user.authority])
    #expect(outcome.status == 64 && outcome.output.isEmpty, "\(outcome)")
    #expect(outcome.errorLines.count == 2)
    for device in try DeviceStore(environment: user.place.environment).names() {
      #expect(try await !user.line("device", "show", device).contains("key      "))
    }
  }

  @Test func `a device of another version is named with the member that is not known`() async throws {
    let user = try Offline()
    _ = try await user.line("attestation", "--nonce", Offline.nonce)
    let file = try DeviceStore(environment: user.place.environment).folder("default") + "/device.json"
    let text = try String(contentsOfFile: file, encoding: .utf8)
    for (old, new, member) in [
      (#""platform":"ios""#, #""platform":"fuchsia""#, "platform"), (#""appId""#, #""appIds""#, "appId"),
      (#""createdAt":"#, #""createdAt":1,"was":"#, "createdAt"),
    ] {
      let changed = text.replacing(old, with: new)
      #expect(changed != text)
      try Data(changed.utf8).write(to: URL(fileURLWithPath: file))
      for command in ["attestation", "assertion"] {
        let outcome = try await user.attest(command, "--nonce", Offline.nonce)
        #expect(outcome.status == 65 && outcome.output.isEmpty)
        #expect(
          outcome.errorLines == [
            "error: the description of device default is of another version of attest, or damaged: see its \(member)",
            "hint: use it with the version that made it; `attest device rm default` removes it",
          ])
      }
    }
  }

  @Test func `the public key of a device is shown in three forms, and the private key in none`() async throws {
    let user = try Offline()
    _ = try await user.line("attestation", "--nonce", Offline.nonce)
    let x963 = try await user.line("device", "show", "default", "--public-key", "x963")
    let point = try #require(Base64.decode(x963))
    #expect(point.count == 65)
    let pem = try await user.line("device", "show", "default", "--public-key", "pem") + "\n"
    try Data(pem.utf8).write(to: URL(fileURLWithPath: user.path("key.pem")))
    let openssl = try ChildProcess(
      Places.tool("openssl"),
      ["pkey", "-pubin", "-in", user.path("key.pem"), "-outform", "DER", "-out", user.path("der")],
      environment: user.place.environment, in: user.place.folder)
    #expect(try await openssl.exit(within: .seconds(60)).code == 0)
    #expect(try user.file("der").suffix(65).elementsEqual(point))
    let jwk = try await user.line("device", "show", "default", "--public-key", "jwk")
    #expect(
      jwk == #"{"crv":"P-256","kty":"EC","x":"\#(Base64URL.encode(point[1..<33]))","#
        + #""y":"\#(Base64URL.encode(point[33...]))"}"#)

    let text = try await user.line("device", "show", "default")
    let json = try await user.line("device", "show", "default", "--json")
    for part in [x963, jwk, "-----BEGIN PUBLIC KEY-----", "app      \(Offline.appID)", "attested, counter 0"] {
      #expect(text.contains(part), "\(part)")
    }
    #expect(json.contains(#""x963":"\#(x963)""#) && json.contains(#""kty":"EC""#))
    // The private key is 32 bytes of its file.
    let store = try DeviceStore(environment: user.place.environment)
    let name = try #require(try FileManager.default.contentsOfDirectory(atPath: store.keysFolder("default")).first)
    let file = try Data(contentsOf: URL(fileURLWithPath: store.keysFolder("default") + "/" + name))
    let secret = try JSONDecoder().decode(SimulatedKey.self, from: file).privateKeyPEM
    let lines = secret.split(separator: "\n").filter { !$0.hasPrefix("-") }
    #expect(lines.count > 1)
    let assertion = try await user.line("assertion", "--nonce", Offline.nonce, "--json")
    for output in [text, json, pem, jwk, assertion] {
      #expect(!output.contains("PRIVATE") && lines.allSatisfy { !output.contains($0) })
    }
  }
}
