@testable import ConfigurationEngine
import Testing

@testable import Settings

@Suite("The settings of the risk metric")
struct RiskSettingsTests {
  /// Keys of developers, made by OpenSSL: on P-256, on P-384, RSA (cut off), and the first one in another form.
  private static let keys = [
    "good.p8": """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgevZzL1gdAFr88hb2
    OF/2NxApJCzGCEDdfSp6VQO30hyhRANCAAQRWz+jn65BtOMvdyHKcvjBeBSDZH2r
    1RTwjmYSi9R/zpBnuQ4EiMnCqfMPWiZqB4QdbAd0E7oH50VpuZ1P087G
    -----END PRIVATE KEY-----

    """,
    "curve.p8": """
    -----BEGIN PRIVATE KEY-----
    MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDDIwHDbELQhxVt9GuEL
    -----END PRIVATE KEY-----

    """,
    "rsa.p8": """
    -----BEGIN PRIVATE KEY-----
    MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj
    -----END PRIVATE KEY-----

    """,
    "ed25519.p8": """
    -----BEGIN PRIVATE KEY-----
    MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g
    -----END PRIVATE KEY-----

    """,
    "sec1.p8": "-----BEGIN EC PRIVATE KEY-----\nMHcC\n-----END EC PRIVATE KEY-----\n",
    "pkcs1.p8": "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\n",
    "locked.p8": "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIHs\n-----END ENCRYPTED PRIVATE KEY-----\n",
    "digits.p8": "-----BEGIN PRIVATE KEY-----\n*!*\n-----END PRIVATE KEY-----\n",
    "prose.p8": "AAABBBCCC1\n",
    "nothing.p8": "",
  ]

  private static func workspace() throws -> Workspace {
    let workspace = try Workspace()
    for (name, content) in keys { try workspace.write(content, to: name, permissions: 0o600) }
    try workspace.write(keys["good.p8"] ?? "", to: "open.p8", permissions: 0o644)
    return workspace
  }

  private static func app(_ risk: String, simulated: Bool = false) -> String {
    let trust = "trust: { attestation_root_file: cert.pem, receipt_root_file: cert.pem }"
    return """
      app_attest:
        apps: [{ team_id: AAABBBCCC1, bundle_id: com.example.app, environments: [development], risk: { \(risk) } }]
        \(simulated ? trust : "# Apple's roots.")
      """
  }

  @Test("Key and id are enough: metrics are observed, and unknown ones accepted")
  func least() throws {
    let workspace = try Self.workspace()
    let settings = try workspace.load(yaml: Self.app("key_file: good.p8, key_id: AAABBBCCC1")).appAttest
    let risk = try #require(settings.apps.first?.risk)
    #expect(risk.keyFile == workspace.folder + "/good.p8" && risk.keyID == "AAABBBCCC1")
    #expect(risk.threshold == nil && risk.action == .observe && risk.whenUnknown == .accept && risk.endpoint == nil)
  }

  @Test("Without a key file there is no risk")
  func off() throws {
    let yaml = "app_attest: { apps: [{ team_id: AAABBBCCC1, bundle_id: com.example.app }] }"
    #expect(try Workspace().load(yaml: yaml).appAttest.apps.first?.risk == nil)
  }

  @Test("Everything is read, for simulated devices with another service")
  func everything() throws {
    let yaml = Self.app(
      """
      key_file: good.p8, key_id: ABCDE12345, threshold: 5, action: revoke, when_unknown: refuse,
      endpoint: 'http://127.0.0.1:8090/v1/attestationData'
      """, simulated: true)
    let settings = try Self.workspace().load(yaml: yaml)
    let risk = try #require(settings.appAttest.apps.first?.risk)
    #expect(risk.keyID == "ABCDE12345" && risk.threshold == 5 && risk.action == .revoke)
    #expect(risk.whenUnknown == .refuse && risk.endpoint == "http://127.0.0.1:8090/v1/attestationData")
    #expect(!settings.warnings.contains { "\($0)".contains("risk") })
  }

  @Test("Apple's own service may be named; simulated devices without a service are a warning")
  func service() throws {
    for endpoint in GateSettings.App.Risk.appleEndpoints {
      let yaml = Self.app("key_file: good.p8, key_id: AAABBBCCC1, endpoint: '\(endpoint)'")
      #expect(try Self.workspace().load(yaml: yaml).appAttest.apps.first?.risk?.endpoint == endpoint)
    }
    let simulated = try Self.workspace().load(
      yaml: Self.app("key_file: good.p8, key_id: AAABBBCCC1", simulated: true))
    #expect(
      simulated.warnings.contains { "\($0)".contains("risk.endpoint: not set: Apple knows no simulated devices") })
  }

  private static let path = "app_attest.apps[0].risk"

  static let cases: [(String, String)] = [
    (
      app("key_file: missing.p8, key_id: AAABBBCCC1"),
      "\(path).key_file: cannot read DIR/missing.p8: No such file or directory (ENOENT)"
    ),
    (app("key_file: nothing.p8, key_id: AAABBBCCC1"), "\(path).key_file: DIR/nothing.p8 is empty"),
    (
      app("key_file: open.p8, key_id: AAABBBCCC1"),
      "\(path).key_file: every user of this machine can read DIR/open.p8"
    ),
    (
      app("key_file: locked.p8, key_id: AAABBBCCC1"),
      "\(path).key_file: the private key in DIR/locked.p8 is encrypted; the gate cannot ask for its passphrase"
    ),
    (app("key_file: rsa.p8, key_id: AAABBBCCC1"), "\(path).key_file: DIR/rsa.p8 has an RSA key, not one on P-256"),
    (app("key_file: pkcs1.p8, key_id: AAABBBCCC1"), "\(path).key_file: DIR/pkcs1.p8 has an RSA key, not one on P-256"),
    (
      app("key_file: curve.p8, key_id: AAABBBCCC1"),
      "\(path).key_file: DIR/curve.p8 has a key on another curve than P-256"
    ),
    (app("key_file: ed25519.p8, key_id: AAABBBCCC1"), "\(path).key_file: DIR/ed25519.p8 has no key on P-256"),
    (
      app("key_file: sec1.p8, key_id: AAABBBCCC1"),
      "\(path).key_file: DIR/sec1.p8 has a key that is not in PKCS #8 (openssl pkcs8 -topk8 -nocrypt converts it)"
    ),
    (
      app("key_file: digits.p8, key_id: AAABBBCCC1"),
      "\(path).key_file: the private key in DIR/digits.p8 is not base64"
    ),
    (
      app("key_file: prose.p8, key_id: AAABBBCCC1"),
      "\(path).key_file: DIR/prose.p8 contains no private key: no PEM block PRIVATE KEY"
    ),
    (app("key_file: good.p8"), "\(path).key_id: missing"),
    (
      app("key_file: good.p8, key_id: aaabbbccc1"),
      "\(path).key_id: \"aaabbbccc1\" contains characters other than A-Z and 0-9 (did you mean AAABBBCCC1)"
    ),
    (app("key_file: good.p8, key_id: AAABBBCCC1, threshold: 0"), "\(path).threshold: 0 is out of range: 1 to 1000000"),
    (app("key_file: good.p8, key_id: AAABBBCCC1, threshold: 1.5"), "\(path).threshold: \"1.5\" is not a whole number"),
    (
      app("key_file: good.p8, key_id: AAABBBCCC1, action: refuse"), "\(path).threshold: missing: action refuse needs it"
    ),
    (
      app("key_file: good.p8, key_id: AAABBBCCC1, action: refus"),
      "\(path).action: \"refus\" is not one of observe, refuse, revoke (did you mean refuse)"
    ),
    (app("key_id: AAABBBCCC1"), "\(path).key_id: without effect without risk.key_file"),
    (app("when_unknown: refuse"), "\(path).when_unknown: without effect without risk.key_file"),
    (
      app("key_file: good.p8, key_id: AAABBBCCC1, endpoint: 'https://other.example/v1/attestationData'"),
      "\(path).endpoint: another service than Apple's is not allowed with Apple's roots"
    ),
    (
      app("key_file: good.p8, key_id: AAABBBCCC1, endpoint: 'http://127.0.0.1/v1/attestationData'"),
      "\(path).endpoint: another service than Apple's is not allowed with Apple's roots"
    ),
    (
      app("key_file: good.p8, key_id: AAABBBCCC1, endpoint: 'http://other.example/v1'", simulated: true),
      "\(path).endpoint: \"http://other.example/v1\" is not encrypted (did you mean https://other.example/v1)"
    ),
    (
      app("key_file: good.p8, key_id: AAABBBCCC1, endpoint: 'http://localhost.example/v1'", simulated: true),
      "\(path).endpoint: \"http://localhost.example/v1\" is not encrypted (did you mean https://localhost.example/v1)"
    ),
    (
      app("key_file: good.p8, key_id: AAABBBCCC1, endpoint: 'https://other.example'", simulated: true),
      "\(path).endpoint: \"https://other.example\" has no path "
        + "(did you mean https://other.example/v1/attestationData)"
    ),
    (
      """
      app_attest:
        apps:
          - platform: android
            package: com.example.app
            signers: [\(AndroidSettingsTests.signer)]
            risk: { key_file: good.p8 }
      """, "\(path).key_file: only with platform: ios"
    ),
  ]

  @Test("Each error is reported once, with its key", arguments: cases)
  func faults(yaml: String, fault: String) throws {
    let faults = try Self.workspace().faults(yaml: yaml)
    #expect(faults.count == 1 && faults[0].hasSuffix(": \(fault)"), "\(faults)")
  }
}
