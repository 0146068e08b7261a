@testable import ConfigurationEngine
import Testing

@testable import Settings

@Suite("The settings of Android apps")
struct AndroidSettingsTests {
  static let signer = String(repeating: "ab", count: 32)

  @Test("Package and signers are enough: TEE, the maker's systems, any patch level and provisioning")
  func least() throws {
    let yaml = """
      app_attest:
        apps:
          - platform: android
            package: com.example.app
            signers: [\(Self.signer)]
      """
    let settings = try Workspace().load(yaml: yaml).appAttest
    #expect(settings.apps.isEmpty && settings.statusList == nil && settings.hasProductionApp)
    let app = try #require(settings.androidApps.first)
    #expect(app.package == "com.example.app" && app.signers == [[UInt8](repeating: 0xAB, count: 32)])
    #expect(app.securityLevel == .tee && app.bootKeysFile == nil && app.leastPatchLevel == nil && !app.requiresRKP)
  }

  @Test("Everything is read, together with an app of iOS")
  func everything() throws {
    let workspace = try Workspace()
    try workspace.write("\(Self.signer)\n", to: "boot.txt")
    let colons = Array(repeating: "AB", count: 32).joined(separator: ":")
    let yaml = """
      app_attest:
        apps:
          - { team_id: AAABBBCCC1, bundle_id: com.example.app, environments: [development] }
          - platform: android
            package: com.example.app
            signers: ["\(colons)"]
            security_level: strongbox
            verified_boot: allow_boot_keys
            boot_keys_file: boot.txt
            min_patch_level: 2026-01
            require_rkp: true
        android: { status_list: https://lists.example/status, ca_file: cert.pem, refresh: 5m, max_age: 2d }
        trust: { android_root_file: cert.pem }
      """
    let settings = try workspace.load(yaml: yaml).appAttest
    #expect(settings.apps.count == 1 && settings.androidApps.count == 1 && !settings.hasProductionApp)
    let app = try #require(settings.androidApps.first)
    #expect(app.securityLevel == .strongbox && app.bootKeysFile == workspace.folder + "/boot.txt" && app.requiresRKP)
    #expect(app.leastPatchLevel == .init(year: 2026, month: 1))
    #expect(app.signers == [[UInt8](repeating: 0xAB, count: 32)])
    let list = try #require(settings.statusList)
    #expect(list.place == .url("https://lists.example/status", caFile: workspace.folder + "/cert.pem"))
    #expect(list.refresh == .seconds(300) && list.maximumAge == .seconds(172_800))
    #expect(settings.trust.androidRootFile == workspace.folder + "/cert.pem")
  }

  @Test("A file of the status list is found from the configuration's folder")
  func statusListFile() throws {
    let workspace = try Workspace()
    try workspace.write("{}", to: "list.json")
    let settings = try workspace.load(yaml: "app_attest: { android: { status_list: ./list.json } }").appAttest
    #expect(settings.statusList?.place == .file(path: workspace.folder + "/list.json"))
  }

  private static func app(_ more: String) -> String {
    "app_attest: { apps: [{ platform: android, package: com.example.app, signers: [\(signer)], \(more) }] }"
  }

  static let cases: [(String, String)] = [
    (app("team_id: AAABBBCCC1"), "app_attest.apps[0].team_id: only with platform: ios"),
    (app("environments: [production]"), "app_attest.apps[0].environments: only with platform: ios"),
    (
      app("validation_category: { when_missing: refuse }"),
      "app_attest.apps[0].validation_category.when_missing: only with platform: ios"
    ),
    (
      "app_attest: { apps: [{ team_id: AAABBBCCC1, bundle_id: com.example.app, require_rkp: true }] }",
      "app_attest.apps[0].require_rkp: only with platform: android"
    ),
    (
      "app_attest: { apps: [{ team_id: AAABBBCCC1, bundle_id: com.example.app, signers: [\(signer)] }] }",
      "app_attest.apps[0].signers: only with platform: android"
    ),
    ("app_attest: { apps: [{ platform: android, package: com.example.app }] }", "app_attest.apps[0].signers: missing"),
    (
      "app_attest: { apps: [{ platform: android, package: com.example.app, signers: [] }] }",
      "app_attest.apps[0].signers: an empty list admits no app"
    ),
    (
      "app_attest: { apps: [{ platform: android, signers: [\(signer)] }] }", "app_attest.apps[0].package: missing"
    ),
    (
      "app_attest: { apps: [{ platform: androi, package: com.example.app }] }",
      "app_attest.apps[0].platform: \"androi\" is not one of ios, android (did you mean android)"
    ),
    (
      "app_attest: { apps: [{ platform: android, package: example, signers: [\(signer)] }] }",
      "app_attest.apps[0].package: \"example\" is not the name of an Android package"
    ),
    (
      "app_attest: { apps: [{ platform: android, package: com.example.app, signers: [abcd] }] }",
      "app_attest.apps[0].signers[0]: \"abcd\" is not a SHA-256: write 64 hex digits"
    ),
    (
      app("min_patch_level: 2026-13"),
      "app_attest.apps[0].min_patch_level: \"2026-13\" is not a month: write it as 2026-01"
    ),
    (
      app("verified_boot: allow_boot_keys"),
      "app_attest.apps[0].boot_keys_file: missing: verified_boot: allow_boot_keys needs the keys"
    ),
    (
      app("boot_keys_file: prose.pem"),
      "app_attest.apps[0].boot_keys_file: without effect with verified_boot: verified"
    ),
    (
      "app_attest: { android: { status_list: http://lists.example/status } }",
      "app_attest.android.status_list: \"http://lists.example/status\" is not a URL with https"
    ),
    (
      "app_attest: { android: { status_list: missing.json } }",
      "app_attest.android.status_list: cannot read DIR/missing.json: No such file or directory (ENOENT)"
    ),
    (
      "app_attest: { android: { status_list: https://lists.example/, refresh: 2d, max_age: 1d } }",
      "app_attest.android.max_age: shorter than app_attest.android.refresh"
    ),
    (
      "app_attest: { android: { status_list: https://lists.example/, refresh: 30s } }",
      "app_attest.android.refresh: less than 1m, for a list that is downloaded"
    ),
    (
      """
      app_attest:
        apps:
          - { team_id: AAABBBCCC1, bundle_id: com.example.app, environments: [development] }
          - { platform: android, package: com.example.app, signers: [\(signer)] }
        trust: { attestation_root_file: cert.pem }
      """,
      "app_attest.trust.attestation_root_file: a root for simulated devices is not allowed with "
        + "com.example.app in environment production"
    ),
    (
      "app_attest: { android: { ca_file: cert.pem } }",
      "app_attest.android.ca_file: without effect without app_attest.android.status_list"
    ),
    (
      """
      app_attest:
        apps: [{ team_id: AAABBBCCC1, bundle_id: com.example.app }]
        trust: { android_root_file: cert.pem }
      """,
      "app_attest.trust.android_root_file: a root for simulated devices is not allowed with "
        + "AAABBBCCC1.com.example.app in environment production"
    ),
    (
      """
      app_attest:
        apps:
          - { platform: android, package: com.example.app, signers: [\(signer)] }
          - { platform: android, package: com.example.app, signers: [\(signer)] }
      """, "app_attest.apps[1].package: the app com.example.app is configured twice"
    ),
  ]

  @Test("Each error is reported once, with its key", arguments: cases)
  func faults(yaml: String, fault: String) throws {
    let faults = try Workspace().faults(yaml: yaml)
    #expect(faults.count == 1 && faults[0].hasSuffix(": \(fault)"), "\(faults)")
  }

  @Test(
    "An empty list that means everything is a warning",
    arguments: [
      ("debug_mtls: { allow_subjects: [] }", "debug_mtls.allow_subjects: an empty list means every subject"),
      ("webhooks: { events: [] }", "webhooks.events: an empty list means all events"),
    ])
  func emptyList(_ yaml: String, _ warning: String) throws {
    let settings = try Workspace().load(yaml: yaml)
    #expect(settings.warnings.contains { "\($0)".contains(warning) }, "\(settings.warnings)")
  }

  @Test(
    "A receiver of webhooks on another machine without TLS is a warning",
    arguments: [
      ("http://127.0.0.1:8080/hook", false), ("http://localhost/hook", false), ("http://[::1]/hook", false),
      ("https://127.example.com/hook", false), ("http://127.example.com/hook", true),
      ("http://127.0.0.1.example.com/hook", true), ("http://192.0.2.1/hook", true),
    ])
  func plainReceiver(_ url: String, _ isWarned: Bool) throws {
    let workspace = try Workspace()
    try workspace.write("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n", to: "hooks.secret", permissions: 0o600)
    let settings = try workspace.load(
      yaml: "webhooks: { url: '\(url)', secret_file: hooks.secret, folder: hooks }")
    #expect(settings.webhooks?.receiver.path == "/hook")
    #expect(settings.warnings.contains { "\($0)".contains("signed but not encrypted") } == isWarned)
  }

  @Test("A missing status list, simulated roots and debug builds next to an Android app are warnings")
  func warnings() throws {
    let app = Self.app("require_rkp: true")
    let warnings = try Workspace().load(yaml: app).warnings
    #expect(warnings.contains { "\($0)".contains("app_attest.android.status_list: not set") })
    let simulated = try Workspace().load(
      yaml: app,
      environment: Workspace.tls.merging(["SALLYPORT_APP_ATTEST__TRUST__ANDROID_ROOT_FILE": "cert.pem"]) { $1 })
    #expect(simulated.warnings.contains { "\($0)".contains("simulated Android devices are admitted") })
    #expect(!simulated.warnings.contains { "\($0)".contains("status_list") })
    let debug = try Workspace().load(
      yaml: app, environment: Workspace.tls.merging(["SALLYPORT_DEBUG_MTLS__CLIENT_CA_FILE": "cert.pem"]) { $1 })
    #expect(debug.warnings.contains { "\($0)".contains("com.example.app has environment production") })
  }
}
