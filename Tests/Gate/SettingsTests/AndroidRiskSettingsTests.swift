@testable import ConfigurationEngine
import Testing

@testable import Settings

@Suite("The settings of the risk metric of Android apps")
struct AndroidRiskSettingsTests {
  private static func app(_ members: String) -> String {
    "app_attest: { apps: [{ platform: android, package: com.example.app, signers: [\(AndroidSettingsTests.signer)]"
      + "\(members) }] }"
  }

  private static func risk(_ members: String) throws -> GateSettings.AndroidApp.Risk? {
    try Workspace().load(yaml: app(", risk: { \(members) }")).appAttest.androidApps.first?.risk
  }

  @Test("Without a threshold and an age of patches there is no risk, also in printed settings")
  func off() throws {
    let app = try Workspace().load(yaml: Self.app("")).appAttest.androidApps.first
    #expect(app != nil && app?.risk == nil)
    #expect(try Self.risk("action: observe") == nil)
  }

  @Test("A threshold is observed unless an action is given, and an age of patches needs one")
  func values() throws {
    #expect(try Self.risk("threshold: 5") == .init(threshold: 5, action: .observe, longestPatchAge: nil))
    #expect(
      try Self.risk("threshold: 99, action: revoke") == .init(threshold: 99, action: .revoke, longestPatchAge: nil))
    #expect(
      try Self.risk("action: refuse, max_patch_age: 365d")
        == .init(threshold: nil, action: .refuse, longestPatchAge: .seconds(365 * 86_400)))
  }

  private static let path = "app_attest.apps[0].risk"

  static let cases: [(String, String)] = [
    ("threshold: 100", "\(path).threshold: 100 is above 99: with platform: android, keys are counted up to 100"),
    ("threshold: 0", "\(path).threshold: 0 is out of range"),
    ("action: refuse", "\(path).threshold: missing: action refuse needs it, or max_patch_age"),
    ("threshold: 5, max_patch_age: 365d", "\(path).max_patch_age: without effect with action: observe"),
    ("action: refuse, max_patch_age: 1d", "\(path).max_patch_age: 1d is out of range: 30d to 3650d"),
    ("threshold: 5, key_id: AAABBBCCC1", "\(path).key_id: only with platform: ios"),
    ("threshold: 5, when_unknown: refuse", "\(path).when_unknown: only with platform: ios"),
  ]

  @Test("A fault is named with its place", arguments: cases)
  func faults(_ members: String, _ expected: String) throws {
    let errors = #expect(throws: ConfigurationErrors.self) { try Self.risk(members) }
    #expect(errors?.faults.count == 1, "\(String(describing: errors))")
    #expect(errors.map { "\($0)".contains(expected) } == true, "\(String(describing: errors))")
  }

  @Test("An age of patches is for Android alone")
  func ios() throws {
    let yaml =
      "app_attest: { apps: [{ team_id: AAABBBCCC1, bundle_id: com.example.app, risk: { max_patch_age: 365d } }] }"
    let errors = #expect(throws: ConfigurationErrors.self) { try Workspace().load(yaml: yaml) }
    #expect(errors.map { "\($0)".contains("\(Self.path).max_patch_age: only with platform: android") } == true)
  }

  @Test("The schema has each member of risk for the platforms that have it")
  func schema() async throws {
    let workspace = try Workspace()
    let ios = "app_attest: { apps: [{ team_id: AAABBBCCC1, bundle_id: com.example.app, risk: { RISK } }] }"
    let android = Self.app(", risk: { RISK }")
    let cases = [
      (ios, "key_id: AAABBBCCC1, threshold: 5", nil), (ios, "max_patch_age: 365d", "max_patch_age"),
      (android, "threshold: 5, max_patch_age: 365d", nil), (android, "key_id: AAABBBCCC1", "key_id"),
      (android, "threshold: 5, when_unknown: refuse", "when_unknown"),
    ]
    var files: [String] = []
    for (number, (document, members, _)) in cases.enumerated() {
      try workspace.write(document.replacing("RISK", with: members), to: "\(number).yaml")
      files.append("\(workspace.folder)/\(number).yaml")
    }
    for ((_, members, name), verdict) in zip(cases, try await SchemaValidator.verdicts(on: files)) {
      let errors = verdict.errors.filter { !$0.contains("is a required property") }
      #expect(errors.count == (name == nil ? 0 : 1), "\(members): \(errors)")
      #expect(name.map { errors.first?.contains("risk.\($0): False schema") == true } ?? true, "\(members): \(errors)")
    }
  }
}
