public import ConfigurationEngine
internal import Cryptography
public import TransportEngine

/// What is wrong with a file of the console over TLS.
public struct ConsoleFileError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The key of the setting.
  public let key: String
  public let reason: String
  /// What the operator can do about it.
  public let hint: String

  init(_ key: String, _ reason: String, hint: String) { (self.key, self.reason, self.hint) = (key, reason, hint) }

  public var description: String { "\(key): \(reason)" }
}

/// The files of the console over TLS. This type alone decides whether it can start with them.
public struct ConsoleFiles: Sendable {
  private let console: ConsoleSettings

  public init(of console: ConsoleSettings) { self.console = console }

  /// Loads the certificate and the TLS settings of the console.
  ///
  /// - Throws: `ConsoleFileError` for the first fault.
  public func load() throws(ConsoleFileError) -> ServerTLS {
    if let fault = secretFaults.first { throw fault }
    do throws(ServerTLS.SetupError) {
      return try ServerTLS(
        .init(certificateFile: console.certificateFile, keyFile: console.keyFile),
        clientAuthorityFile: console.clientAuthority?.file,
        revocationListFile: console.clientAuthority?.revocationListFile)
    } catch {
      let key = console.files.first { $0.path == error.file }?.key ?? "admin.console.cert_file"
      throw ConsoleFileError(
        key, error.description,
        hint: "the console's user must read it, and it must be PEM: a chain, its unencrypted key, a CA or its lists")
    }
  }

  /// The first line of the file with the client secret at the provider; `nil` for a public client.
  ///
  /// - Throws: `ConsoleFileError` if the file cannot be read, or has no secret.
  public func clientSecret() throws(ConsoleFileError) -> String? {
    guard let file = console.provider?.secretFile else { return nil }
    let key = "admin.console.oidc.client_secret_file"
    let bytes: [UInt8]
    do throws(FileContentError) { bytes = try FileContent.read(file, limit: 4096) } catch {
      throw ConsoleFileError(key, "\(file): \(error.reason)", hint: "name a file that the console's user can read")
    }
    let line = bytes.prefix { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }
    guard !line.isEmpty, line.allSatisfy({ (0x20...0x7E).contains($0) }) else {
      throw ConsoleFileError(
        key, "\(file) has no secret on its first line", hint: "write the secret that the provider shows for the client")
    }
    return String(decoding: line, as: UTF8.self)
  }

  private var secretFaults: [ConsoleFileError] {
    let files = [
      ("admin.console.key_file", console.keyFile),
      ("admin.console.oidc.client_secret_file", console.provider?.secretFile),
    ]
    return files.compactMap { key, file in
      guard let file, let permissions = FileContent.permissions(of: file), permissions & 0o004 != 0 else { return nil }
      return ConsoleFileError(key, "every user of this machine can read \(file)", hint: "run chmod 600 \(file)")
    }
  }

  /// What a check says about the files.
  public struct Finding: Sendable {
    public let outcome: ProbeResult.Outcome
    public let key: String
    public let text: String
    public let hint: String?

    init(_ outcome: ProbeResult.Outcome, _ key: String, _ text: String, hint: String? = nil) {
      (self.outcome, self.key, self.text, self.hint) = (outcome, key, text, hint)
    }
  }

  /// Tries the files, for a check that may run as another user than the console.
  public var findings: [Finding] {
    let unreadable = console.files.compactMap { key, path -> Finding? in
      do throws(FileContentError) { _ = try FileContent.read(path, limit: Self.limit) } catch {
        return error == .isForbidden
          ? Finding(
            .warning, key, "\(path) cannot be read by this user",
            hint: "run the check as the user of the console, too")
          : Finding(
            .failed, key, "\(path): \(error.reason)", hint: "name a file that the console's user can read")
      }
      return nil
    }
    guard unreadable.isEmpty else { return unreadable }
    do throws(ConsoleFileError) {
      _ = try load()
      _ = try clientSecret()
      return [Finding(.passed, "admin.console.cert_file", "usable with its key, at \(console.url.text)")]
    } catch {
      return [Finding(.failed, error.key, error.reason, hint: error.hint)]
    }
  }

  /// The maximum size of a file: that of a list of revoked certificates.
  private static let limit = RevocationList.maximumSize

  /// The SHA-256 of each file, so that a change is noticed; `nil` for one that cannot be read.
  public var digests: [[UInt8]?] {
    console.files.map { file in (try? FileContent.read(file.path, limit: Self.limit)).map { SHA256.hash($0) } }
  }
}
