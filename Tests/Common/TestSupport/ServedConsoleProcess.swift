import Foundation
import Glibc

/// The process of a console over TLS, of any program, and people with client certificates who use it by curl.
public struct ServedConsoleProcess: Sendable {
  /// The address that people open.
  public static let url = "https://console.example:7443"
  /// The cookie of a session.
  public static let sessionCookie = "__Host-console-7443"

  public let process: ChildProcess
  public let port: UInt16
  private let folder: String

  /// Adds a console to the configuration `file`, whose admin server has no other settings than its address.
  ///
  /// - Parameters:
  ///   - people: The roles by the common name of a certificate; empty for no sign-in by certificate.
  ///   - more: Further settings of the console.
  public static func add(to file: String, people: [String: String], _ more: String = "") throws {
    let text = try String(contentsOfFile: file, encoding: .utf8)
    let entries = people.sorted { $0.key < $1.key }.map { name, role in
      "{ subject: \"CN=\(name)\", role: \(role) }"
    }
    let authority = people.isEmpty ? "" : "client_ca_file: staff.pem, people: [\(entries.joined(separator: ", "))],"
    let console = """
      console: { listen: "127.0.0.1:0", url: "\(url)", cert_file: console.pem, key_file: console.key, \(authority) \
      \(more) }
      """
    let new = text.replacing(/admin: \{ listen: "([^"]+)"(, console: .*)? \}\n/) { match in
      "admin: { listen: \"\(match.output.1)\", \(console) }\n"
    }
    try new.write(toFile: file, atomically: true, encoding: .utf8)
  }

  /// Makes the certificates of a console and of people in `folder`: `NAME.pem` and `NAME.key`.
  public static func makeCertificates(for names: [String], in folder: String) async throws {
    let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    try await openssl(
      ["req", "-x509"] + curve + [
        "-keyout", "console.key", "-out", "console.pem", "-days", "2", "-subj", "/CN=console", "-addext",
        "subjectAltName=DNS:console.example",
      ], in: folder)
    for authority in ["staff", "foreign"] {
      try await openssl(
        ["req", "-x509"] + curve + [
          "-keyout", "\(authority).key", "-out", "\(authority).pem", "-days", "2", "-subj", "/CN=Staff",
        ], in: folder)
    }
    for name in names {
      try await openssl(
        ["req"] + curve + ["-keyout", "\(name).key", "-out", "\(name).csr", "-subj", "/CN=\(name)"], in: folder)
      for (authority, file) in [("staff", name), ("foreign", "foreign-\(name)")] {
        try await openssl(
          [
            "x509", "-req", "-in", "\(name).csr", "-CA", "\(authority).pem", "-CAkey", "\(authority).key",
            "-set_serial",
            "\(UInt32.random(in: 1...UInt32.max))", "-days", "2", "-out", "\(file).pem",
          ], in: folder)
      }
      try Data(contentsOf: URL(fileURLWithPath: "\(folder)/\(name).key")).write(
        to: URL(fileURLWithPath: "\(folder)/foreign-\(name).key"))
    }
  }

  /// Writes the list `crl.pem` of the authority whose certificates people have, which revokes that of `name` and all those
  /// that it has revoked before.
  public static func makeRevocationList(revoking name: String? = nil, in folder: String) async throws {
    let (settings, revoked) = ("\(folder)/revoked.cnf", "\(folder)/revoked.txt")
    try """
    [ca]
    default_ca = staff
    [staff]
    database = revoked.txt
    default_md = sha256
    default_crl_days = 2

    """.write(toFile: settings, atomically: true, encoding: .utf8)
    if !FileManager.default.fileExists(atPath: revoked) {
      try "".write(toFile: revoked, atomically: true, encoding: .utf8)
    }
    let common = ["ca", "-config", "revoked.cnf", "-cert", "staff.pem", "-keyfile", "staff.key"]
    if let name { try await openssl(common + ["-revoke", "\(name).pem"], in: folder) }
    try await openssl(common + ["-gencrl", "-out", "crl.new"], in: folder)
    guard rename("\(folder)/crl.new", "\(folder)/crl.pem") == 0 else { throw Refused(text: "no list in \(folder)") }
  }

  private static func openssl(_ arguments: [String], in folder: String) async throws {
    let run = try await ChildProcess.run(Places.tool("openssl"), arguments, in: folder)
    guard run.exit == .code(0) else { throw Refused(text: run.errors.joined(separator: "\n")) }
  }

  public struct Refused: Error, Sendable {
    let text: String
  }

  /// Starts `PROGRAM console --serve -c FILE` and waits until it serves.
  ///
  /// - Parameter folder: Has the certificates.
  public init(_ program: String, _ file: String, in folder: String) async throws {
    process = try ChildProcess(try Places.product(program), ["console", "--serve", "-c", file])
    self.folder = folder
    let line = try await process.errors.first("the console's address") { $0.contains("console listening") }
    guard let port = line.firstMatch(of: /127\.0\.0\.1:(\d+)/).flatMap({ UInt16($0.output.1) }) else {
      throw Refused(text: line)
    }
    self.port = port
  }

  /// Sends a request by curl and returns the answer.
  ///
  /// - Parameters:
  ///   - target: The path with the query, or a whole URL.
  ///   - name: Whose certificate the connection has; `nil` for none.
  ///   - fields: In place of the usual ones.
  public func send(
    _ method: String, _ target: String, as name: String? = nil, cookie: String? = nil, body: String = "",
    _ fields: [String] = []
  ) async throws -> ConsoleAnswer {
    let answer = "\(folder)/answer-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: answer) }
    var arguments = [
      "-sS", "-i", "--http1.1", "-m", "60", "--noproxy", "*", "--cacert", "\(folder)/console.pem", "--connect-to",
      "console.example:7443:127.0.0.1:\(port)", "-X", method, "-o", answer,
    ]
    if let name { arguments += ["--cert", "\(folder)/\(name).pem", "--key", "\(folder)/\(name).key"] }
    if let cookie { arguments += ["-H", "Cookie: \(cookie)"] }
    if method == "POST" { arguments += ["--data-raw", body] }
    let standard = method == "POST" ? ["Origin: \(Self.url)"] : []
    for field in fields.isEmpty ? standard : fields { arguments += ["-H", field] }
    arguments.append(target.hasPrefix("https:") ? target : Self.url + target)
    let run = try await ChildProcess.run(Places.tool("curl"), arguments)
    guard run.exit == .code(0) else { throw Refused(text: run.errors.joined(separator: "\n")) }
    return try ConsoleAnswer([UInt8](Data(contentsOf: URL(fileURLWithPath: answer))))
  }

  /// Signs in by certificate and returns the cookie of the browser.
  public func signIn(as name: String) async throws -> String {
    let answer = try await send("POST", "/sign-in/certificate", as: name)
    guard answer.status == 303, let cookie = answer.headers.first("Set-Cookie") else {
      throw Refused(text: answer.text)
    }
    return String(cookie.prefix { $0 != ";" })
  }

  /// Does an act by the form of a page.
  public func act(
    _ act: String, _ values: String, on page: String, as name: String? = nil, cookie: String
  ) async throws -> ConsoleAnswer {
    let text = try await send("GET", page, as: name, cookie: cookie).text
    guard let token = text.firstMatch(of: /name="token" value="([^"]+)"/)?.output.1 else { throw Refused(text: text) }
    return try await send(
      "POST", "/act/\(act)", as: name, cookie: cookie, body: "\(values)&token=\(token)&back=\(page)")
  }

  /// Applies the changed configuration, and waits until the console says so.
  public func reload() async throws {
    let known = process.errors.lines.count { Self.isReload($0) }
    process.send(SIGHUP)
    _ = try await process.errors.first(known + 1, "the line about the reload") { Self.isReload($0) }
  }

  private static func isReload(_ line: String) -> Bool {
    line.contains("configuration reloaded") || line.contains("configuration refused")
  }
}

extension ServedConsoleProcess {
  /// Begins a sign-in, and returns where the provider sends the browser, with the cookie of the sign-in.
  public func begin(at provider: ProviderProcess) async throws -> (redirect: String, cookie: String?) {
    let begun = try await send("GET", "/sign-in/provider?back=/")
    guard let address = begun.headers.first("Location"), let redirect = try await provider.redirect(from: address)
    else {
      throw Refused(text: begun.text)
    }
    return (redirect, begun.headers.first("Set-Cookie").map { String($0.prefix { $0 != ";" }) })
  }

  /// Signs in at `provider`, and returns the answer to its redirect.
  public func signIn(at provider: ProviderProcess) async throws -> ConsoleAnswer {
    let (redirect, cookie) = try await begin(at: provider)
    return try await send("GET", redirect, cookie: cookie)
  }
}

extension ConsoleAnswer {
  /// The cookie of the session that this answer of a console over TLS opens.
  public var session: String? {
    headers.all("Set-Cookie").first { $0.hasPrefix(ServedConsoleProcess.sessionCookie + "=") }.map {
      String($0.prefix { $0 != ";" })
    }
  }
}

/// A provider at which people of a console sign in: the well-behaved one of `hostile_provider.py`, or with one fault.
public struct ProviderProcess: Sendable {
  public let issuer: String
  public let authorityFile: String
  private let process: ChildProcess

  public init() async throws {
    let program = ProjectFile.path("Tests/App/Programs/hostile_provider.py")
    process = try ChildProcess("/usr/bin/python3", [program])
    let line = try await process.output.first("the provider's description") { $0.hasPrefix("{") }
    let found = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
    guard let issuer = found?["issuer"] as? String, let authority = found?["ca_file"] as? String else {
      throw ServedConsoleProcess.Refused(text: line)
    }
    (self.issuer, authorityFile) = (issuer, authority)
  }

  /// The settings of a console that signs people in here. A file `secret` is in the folder of the configuration.
  ///
  /// - Parameter client: `confidential-client` sends its secret in a header field, and `post-client` in the body; the
  ///   provider offers both.
  public func settings(groups: [String: String], client: String = "confidential-client") -> String {
    let entries = groups.sorted { $0.key < $1.key }.map { "{ name: \($0.key), role: \($0.value) }" }
    return """
      oidc: { issuer: "\(issuer)", client_id: \(client), client_secret_file: secret, \
      ca_file: "\(authorityFile)", groups: [\(entries.joined(separator: ", "))] }
      """
  }

  /// Writes the secret of the client to `secret` in `folder`.
  public static func writeSecret(in folder: String) throws {
    let file = folder + "/secret"
    try "secret-of-the-client-42\n".write(toFile: file, atomically: true, encoding: .utf8)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
  }

  /// Sets the fault and the groups, as JSON.
  public func set(fault: String? = nil, groups: String) async throws {
    let fault = fault.map { "\"\($0)\"" } ?? "null"
    _ = try await curl([
      "-d",
      """
      {"fault": \(fault), "claims": {"groups": \(groups), "preferred_username": "ada"}, \
      "redirect_uri": "\(ServedConsoleProcess.url)/sign-in/callback"}
      """, issuer + "/control",
    ])
  }

  /// Signs the person in at `address`, and returns where the browser goes then.
  public func redirect(from address: String) async throws -> String? {
    try await curl(["-o", "/dev/null", "-w", "%{redirect_url}", address]).first { !$0.isEmpty }
  }

  private func curl(_ arguments: [String]) async throws -> [String] {
    let run = try await ChildProcess.run(
      Places.tool("curl"), ["-sS", "--noproxy", "*", "-m", "60", "--cacert", authorityFile] + arguments)
    guard run.exit == .code(0) else { throw ServedConsoleProcess.Refused(text: run.errors.joined(separator: "\n")) }
    return run.output
  }

  /// Ends it with everything that it left.
  public func stop() async {
    process.closeInput()
    _ = try? await process.exit()
    process.kill()
  }
}
