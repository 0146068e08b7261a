/// The configuration of a test's gate, in addition to the fixed part: roots of the test's authority, one simulated
/// app, loopback.
struct GateConfiguration: Sendable {
  static let teamID = "SALLYPORT1"
  static let bundleID = "com.example.app"
  static let developerKey = "developer.p8"
  static let appID = "\(teamID).\(bundleID)"

  var address = "127.0.0.1"
  /// No process listens at port 1. A test that needs an upstream sets one.
  var upstream = "ws://127.0.0.1:1"
  /// Additional lines of the route, such as `upstream_tls: { … }`.
  var routeExtras: [String] = []
  /// Routes after the route for `/`, such as `{ path: /game, upstream: … }`.
  var furtherRoutes: [String] = []
  var hasApp = true
  /// The accepted app, and the environment of its keys. With `production`, only Apple's root may be trusted.
  var bundleID = Self.bundleID
  var environment = "development"
  /// Names of the accepted validation categories; `nil` for all.
  var categories: [String]?
  /// Members of the app's `risk`, such as `threshold: 5`, in addition to a key; `nil` for none.
  var risk: String?
  /// The policy of a second app, for Android, which trusts simulated devices, as members of a YAML mapping, and further
  /// files of the gate's folder; `nil` for none.
  var android: AndroidConfiguration?
  var enforcement = "enforce"
  var challengeTTL = "300s"
  /// The challenge keys, so that a test can issue nonces of other times; `nil` for the gate's own keys.
  var challengeKeys: String?
  /// Paths; relative paths are in the gate's folder.
  var clientAuthority: String?
  var allowedSubjects: [String] = []
  /// The path of lists of revoked client certificates.
  var revocationList: String?
  var store = "state.db"
  /// The number of calls that may wait for the store.
  var mostWaiting = 4096
  var leastTLS = "1.2"
  /// Additional keys of `tls`, such as `reload: off`.
  var tlsExtras: [String] = []
  /// Additional keys of `listen`, such as `proxy_protocol: any`.
  var listenExtras: [String] = []
  /// Additional sections, such as `limits: { … }`.
  var sections: [String] = []

  /// Returns the configuration file for a gate whose folder contains the authority's files.
  func yaml(in folder: String) -> String {
    let listen = ["address: \"\(address)\"", "port: 0", "loops: 2"] + listenExtras
    let tls = ["cert_file: server.pem", "key_file: server.key", "min_version: \"\(leastTLS)\""] + tlsExtras
    var lines = [
      "version: 1",
      "listen: { \(listen.joined(separator: ", ")) }",
      "tls: { \(tls.joined(separator: ", ")) }",
      "store: { url: \"sqlite://\(folder)/\(store)\", max_waiting: \(mostWaiting) }",
      "routes:",
      "  - path: /",
      "    upstream: \"\(upstream)\"",
    ]
    lines += routeExtras.map { "    \($0)" } + furtherRoutes.map { "  - \($0)" }
    lines += appAttest + sections
    if let clientAuthority {
      let subjects = allowedSubjects.map { "\"\($0)\"" }.joined(separator: ", ")
      let lists = revocationList.map { ", crl_file: \($0)" } ?? ""
      let allowed = allowedSubjects.isEmpty ? "" : ", allow_subjects: [\(subjects)]"
      lines.append("debug_mtls: { client_ca_file: \(clientAuthority)\(allowed)\(lists) }")
    }
    return lines.joined(separator: "\n") + "\n"
  }

  private var appAttest: [String] {
    var lines = [
      "app_attest:",
      "  enforcement: \(enforcement)",
      "  challenge_ttl: \(challengeTTL)",
    ]
    if environment != "production" {
      let further = android == nil ? "" : ", android_root_file: \(AndroidConfiguration.rootFile)"
      lines.append(
        "  trust: { attestation_root_file: attestation-root.pem, receipt_root_file: receipt-root.pem\(further) }")
    }
    if let list = android?.statusList { lines.append("  android: \(list)") }
    if challengeKeys != nil { lines.append("  challenge_keys_file: challenge.keys") }
    guard hasApp else { return lines }
    lines += [
      "  apps:", "    - team_id: \(Self.teamID)", "      bundle_id: \(bundleID)",
      "      environments: [\(environment)]",
    ]
    if let categories {
      lines.append(
        "      validation_category: { allow: [\(categories.joined(separator: ", "))], when_missing: refuse }")
    }
    if let risk {
      lines.append(
        "      risk: { key_file: \(Self.developerKey), key_id: AAABBBCCC1, endpoint: \"http://127.0.0.1:1/v1\", \(risk) }"
      )
    }
    if let android { lines.append("    - \(android.app)") }
    return lines
  }
}
