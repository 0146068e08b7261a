internal import ByteCoding
internal import Foundation
public import MFADomain
public import TestSupport

/// A push service on loopback that checks what it gets, as Apple's and Google's do.
public struct PushServer: Sendable {
  public static let keyID = "ABC123DEFG"
  public static let teamID = "DEF123GHIJ"

  /// A name in the certificate, for a server that is reached through a proxy.
  public static let host = "push.example.test"

  public let service: PushAddress.Service
  public let process: ChildProcess
  /// The server, without a path.
  public let url: String
  /// The roots that verify the server; `nil` for one without TLS.
  public let authorityFile: String?
  /// The key of the operator: `AuthKey.p8`, or the file of a service account.
  public let keyFile: String
  /// The private key of the operator, as PEM.
  public let pem: String

  /// Starts a server whose files are in `folder`.
  public init(_ service: PushAddress.Service, in folder: String) async throws {
    self.service = service
    let (key, publicKey) = (folder + "/\(service)-key.p8", folder + "/\(service)-public.pem")
    let kind = service == .apns ? ["EC", "-pkeyopt", "ec_paramgen_curve:P-256"] : ["RSA"]
    try await Self.openssl(["genpkey", "-algorithm"] + kind + ["-out", key])
    try await Self.openssl(["pkey", "-in", key, "-pubout", "-out", publicKey])
    pem = try String(contentsOfFile: key, encoding: .utf8)
    var arguments = [publicKey]
    if service == .apns {
      let (certificate, serverKey) = (folder + "/apns-ca.pem", folder + "/apns-server.key")
      try await Self.openssl([
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
        "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,DNS:\(Self.host),IP:127.0.0.1", "-keyout", serverKey,
        "-out", certificate,
      ])
      arguments = [certificate, serverKey, publicKey]
      authorityFile = certificate
    } else {
      authorityFile = nil
    }
    process = try ChildProcess(
      "/usr/bin/python3", [ProjectFile.path("Tests/Backend/Programs/push_services.py"), "\(service)"] + arguments)
    let line = try await process.output.first("the port of the push service") { $0.hasPrefix("port ") }
    let port = line.dropFirst(5)
    if service == .apns {
      url = "https://localhost:\(port)"
      keyFile = key
    } else {
      url = "http://127.0.0.1:\(port)"
      keyFile = folder + "/service-account.json"
      let account: JSONValue = [
        "type": "service_account", "project_id": "demo-project", "private_key_id": "key-1",
        "private_key": .string(pem),
        "client_email": "push@demo-project.iam.gserviceaccount.com", "token_uri": .string(url + "/token"),
      ]
      try account.encoded.write(toFile: keyFile, atomically: true, encoding: .utf8)
      _ = chmod(keyFile, 0o600)
    }
  }

  /// Calls `body` with a server, and stops it afterwards.
  public static func with<R>(_ service: PushAddress.Service, _ body: (PushServer) async throws -> R) async throws -> R {
    try await Places.withTemporaryFolder { folder in
      let server = try await PushServer(service, in: folder)
      defer { server.process.kill() }
      return try await body(server)
    }
  }

  /// The port on loopback.
  public var port: UInt16 { UInt16(url.split(separator: ":").last ?? "") ?? 0 }

  /// The options of a backend that sends by this service.
  public var configuration: String {
    switch service {
    case .apns:
      """
        apns:
          key_file: \(keyFile)
          key_id: \(Self.keyID)
          team_id: \(Self.teamID)
          endpoint: \(url)
          ca_file: \(authorityFile ?? "")

      """
    case .fcm:
      """
        fcm:
          service_account_file: \(keyFile)
          endpoint: \(url)

      """
    }
  }

  /// Sends a command to the server, and waits until it is obeyed.
  public func command(_ command: JSONValue) async throws {
    let obeyed = process.output.lines.count { $0.contains("obeyed") }
    process.write(command.encoded + "\n")
    _ = try await process.output.first(obeyed + 1, "the obeyed command") { $0.contains("obeyed") }
  }

  /// Sets the answer to the next notification.
  public func answer(_ status: Int, _ body: JSONValue = [:], headers: JSONValue = [:]) async throws {
    try await command(["answer": .number(Double(status)), "body": body, "headers": headers])
  }

  /// The requests so far whose path has `part`: all that the server has answered.
  public func requests(_ part: String = "") async throws -> [JSONValue] {
    // The output is read by another thread. What is written after the requests is read after them.
    try await command(["sync": true])
    return try process.output.lines.filter { Self.isRequest($0, part) }.map { try JSONValue(Data($0.utf8)) }
  }

  /// Waits for the first `count` requests whose path has `part`.
  public func requests(_ count: Int, _ part: String = "") async throws -> [JSONValue] {
    try await process.output.first(count, "\(count) requests") { Self.isRequest($0, part) }
      .map { try JSONValue(Data($0.utf8)) }
  }

  private static func isRequest(_ line: String, _ part: String) -> Bool {
    (try? JSONValue(Data(line.utf8)))?["path"]?.text?.contains(part.isEmpty ? "/" : part) == true
  }

  private static func openssl(_ arguments: [String]) async throws {
    let made = try await ChildProcess.run(Places.tool("openssl"), arguments)
    guard made.exit == .code(0) else { throw OpenSSLFailed(text: made.errors.joined(separator: "\n")) }
  }

  struct OpenSSLFailed: Error {
    let text: String
  }
}
