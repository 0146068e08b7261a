import ConfigurationEngine
import Foundation
import mfa_backend
import Testing

@Suite("Settings of security keys")
struct WebAuthnSettingsTests {
  private func read(_ values: [String: String]) -> Result<BackendSettings, ConfigurationErrors> {
    let least = [
      "database": "ephemeral", "gate.jwks": "keys.json", "gate.issuer": "https://gate", "gate.audience": "m",
    ]
    let flags = least.merging(values) { $1 }.map { FlagSetting("--" + $0, $0, $1) }
    let reader = SettingsReader(file: nil, environment: [:], flags: flags.compactMap(\.self))
    return Result { () throws(ConfigurationErrors) in try reader.read() }
  }

  @Test("B-085 security keys are off without a domain, and the domain's own page is the default origin")
  func off() throws {
    #expect(try read([:]).get().webAuthn == nil)
    #expect(try read(["webauthn.user_verification": "required"]).get().webAuthn == nil)
    let least = try #require(try read(["webauthn.rp_id": "example.com"]).get().webAuthn)
    #expect(least.origins == ["https://example.com"] && least.userVerification == "preferred")
    let more = try read([
      "webauthn.rp_id": "example.com", "webauthn.user_verification": "required",
      "webauthn.origins": "https://login.example.com, https://example.com:8443",
    ]).get().webAuthn
    #expect(more?.origins == ["https://login.example.com", "https://example.com:8443"])
    #expect(more?.userVerification == "required")
  }

  @Test("B-085 origins without a domain and an unknown value are faults")
  func faults() throws {
    for values in [
      ["webauthn.origins": "https://example.com"],
      ["webauthn.rp_id": "example.com", "webauthn.user_verification": "maybe"],
    ] {
      guard case .failure(let faults) = read(values) else {
        Issue.record("taken: \(values)")
        continue
      }
      #expect(faults.faults.count == 1)
    }
  }

  @Test(
    "B-085 the id of a relying party is a domain",
    arguments: [
      ("example.com", true), ("localhost", true), ("a-1.example.com", true), ("Example.com", false),
      ("https://example.com", false), ("example.com:443", false), ("example..com", false), (".example.com", false),
      ("example.com.", false), ("-a.example.com", false), ("192.0.2.1", false), ("ex\u{E4}mple.com", false),
    ])
  func domains(_ domain: String, _ isOne: Bool) {
    let result = read(["webauthn.rp_id": domain])
    #expect((try? result.get().webAuthn?.relyingParty) == (isOne ? domain : nil))
  }

  @Test(
    "B-085 an origin is an https page of the domain or a subdomain, or an Android app",
    arguments: [
      ("https://example.com", true), ("https://login.example.com:8443", true),
      ("android:apk-key-hash:" + String(repeating: "a", count: 43), true), ("https://example.com/", false),
      ("http://example.com", false), ("https://example.org", false), ("https://evilexample.com", false),
      ("https://example.com:0", false), ("https://example.com:x", false), ("https://user@example.com", false),
      ("android:apk-key-hash:short", false), ("example.com", false), ("https://example.com:443", false),
      ("https://example.com:4443", true), ("https://example.com:80", true),
    ])
  func origins(_ origin: String, _ isOne: Bool) {
    let result = read(["webauthn.rp_id": "example.com", "webauthn.origins": origin])
    #expect((try? result.get().webAuthn?.origins) == (isOne ? [origin] : nil))
  }

  @Test("B-085 an origin with the default port, which no browser writes, is refused with the form that browsers write")
  func defaultPort() throws {
    for (party, origin, plain) in [
      ("example.com", "https://login.example.com:443", "https://login.example.com"),
      ("localhost", "http://localhost:80", "http://localhost"),
    ] {
      guard case .failure(let faults) = read(["webauthn.rp_id": party, "webauthn.origins": origin]) else {
        Issue.record("taken: \(origin)")
        continue
      }
      #expect(faults.faults.map(\.suggestion) == [plain])
    }
  }

  @Test("B-085 http is accepted for the domain localhost")
  func localhost() throws {
    let settings = try read(["webauthn.rp_id": "localhost", "webauthn.origins": "http://localhost:3000"]).get()
    #expect(settings.webAuthn?.origins == ["http://localhost:3000"])
  }
}
