import ConfigurationEngine
import Foundation
import mfa_backend
import Testing

@Suite("Settings of an identity provider")
struct ProviderSettingsTests {
  private func read(_ values: [String: String]) -> Result<BackendSettings, ConfigurationErrors> {
    let least = [
      "database": "ephemeral", "gate.jwks": "keys.json", "gate.issuer": "https://gate", "gate.audience": "m",
    ]
    let flags = least.merging(values) { $1 }.map { FlagSetting("--" + $0, $0, $1) }
    let reader = SettingsReader(file: nil, environment: [:], flags: flags.compactMap(\.self))
    return Result { () throws(ConfigurationErrors) in try reader.read() }
  }

  private func faults(_ values: [String: String]) -> [String] {
    guard case .failure(let faults) = read(values) else { return [] }
    return faults.faults.compactMap(\.key).sorted()
  }

  @Test("an identity provider is off unless it is set")
  func off() throws { #expect(try read([:]).get().provider == nil) }

  @Test("client ids are separated by commas, and the roots are those of the system if no file is set")
  func values() throws {
    let least = try #require(
      try read(["oidc.issuer": "https://login.example.com/", "oidc.audience": "app"]).get().provider)
    #expect(least.issuer == "https://login.example.com/")
    #expect(least.audiences == ["app"] && least.authorityFile == nil)
    #expect(least.trustedAudiences.isEmpty && least.clockSkew == .seconds(300))
    let more = try read([
      "oidc.issuer": "https://login.example.com/realms/one", "oidc.audience": "app-ios, app-android",
      "oidc.ca_file": "/etc/roots.pem", "oidc.trusted_audiences": "383168317235462148, sibling",
      "oidc.clock_skew": "90s",
    ]).get().provider
    #expect(more?.trustedAudiences == ["383168317235462148", "sibling"] && more?.clockSkew == .seconds(90))
    #expect(more?.audiences == ["app-ios", "app-android"] && more?.authorityFile == "/etc/roots.pem")
  }

  @Test(
    "an issuer is an https URL without query, fragment and user, or http on loopback",
    arguments: [
      ("https://login.example.com", true), ("https://login.example.com:8443/a/b", true),
      ("http://127.0.0.1:8080", true), ("http://localhost/realm", true), ("http://[::1]:8080", true),
      ("http://login.example.com", false), ("https://", false), ("login.example.com", false), ("/etc/keys", false),
      ("ftp://login.example.com", false), ("https://login.example.com?a=b", false),
      ("https://login.example.com#a", false), ("https://ada@login.example.com", false),
    ])
  func issuers(_ issuer: String, _ isOne: Bool) {
    let values = ["oidc.issuer": issuer, "oidc.audience": "app"]
    #expect((try? read(values).get().provider?.issuer) == (isOne ? issuer : nil))
    #expect(faults(values) == (isOne ? [] : ["oidc.issuer"]))
  }

  @Test("issuer and audience need each other, and all faults are reported at once")
  func incomplete() {
    #expect(faults(["oidc.issuer": "https://login.example.com"]) == ["oidc.audience"])
    #expect(faults(["oidc.audience": "app"]) == ["oidc.issuer"])
    #expect(faults(["oidc.ca_file": "roots.pem"]) == ["oidc.audience", "oidc.issuer"])
    #expect(faults(["oidc.issuer": "http://example.com", "oidc.audience": " , "]) == ["oidc.audience", "oidc.issuer"])
  }

  @Test(
    "clocks may differ by fifteen minutes at most",
    arguments: [("0s", true), ("15m", true), ("16m", false), ("5", false)])
  func clocks(_ skew: String, _ isAllowed: Bool) {
    let values = ["oidc.issuer": "https://login.example.com", "oidc.audience": "app", "oidc.clock_skew": skew]
    #expect(faults(values) == (isAllowed ? [] : ["oidc.clock_skew"]))
  }

  @Test("a fault of the file has its line and column")
  func place() throws {
    let file = NSTemporaryDirectory() + "mfa-\(UUID().uuidString).yaml"
    let text = """
      database: ephemeral
      gate: { jwks: keys.json, issuer: "https://gate", audience: mfa }
      oidc:
        issuer: http://login.example.com
        audience: app
      """
    try text.write(toFile: file, atomically: true, encoding: .utf8)
    defer { try? FileManager.default.removeItem(atPath: file) }
    #expect {
      try SettingsReader(file: file, environment: [:], flags: []).read()
    } throws: { error in
      (error as? ConfigurationErrors)?.faults.map(\.description).first?.hasPrefix("\(file):4:11: oidc.issuer: must be")
        == true
    }
  }

  @Test("a provider cannot be combined with required biometry, which an ID token does not prove")
  func biometry() {
    let provider = ["oidc.issuer": "https://login.example.com", "oidc.audience": "app"]
    #expect(faults(provider.merging(["policy.device_unlock": "biometric"]) { $1 }) == ["oidc.issuer"])
    #expect(faults(["policy.device_unlock": "biometric"]).isEmpty)
  }
}
