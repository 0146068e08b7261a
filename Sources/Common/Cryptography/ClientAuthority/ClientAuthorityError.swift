internal import Glibc

/// The reason why an operation of a client authority failed.
public enum ClientAuthorityError: Error, Sendable, Hashable {
  /// A file at this path already exists.
  case exists(String)
  /// There is no file at this path.
  case absent(String)
  /// A system call on `path` failed with this `errno`.
  case system(_ action: Action, path: String, code: Int32)
  /// The content of the file cannot be used. The reason does not quote key material.
  case malformed(_ path: String, reason: String)
  /// Another authority issued the certificate in this file.
  case foreign(String)
  /// The name cannot be used for a client's files.
  case unusableName(String)
  /// OpenSSL reported an error.
  case cryptography(String)

  /// What was to be done with a file or folder, as a message says it.
  public enum Action: String, Sendable, Hashable {
    case read, write, open
    case createFolder = "create the folder"
  }
}

extension ClientAuthorityError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .exists(let path): "\(path) already exists"
    case .absent(let path): "\(path) does not exist"
    case .system(let action, let path, let code):
      "cannot \(action.rawValue) \(path): \(String(cString: strerror(code)))"
    case .malformed(let path, let reason): "\(path): \(reason)"
    case .foreign(let path): "\(path): another authority issued this certificate"
    case .unusableName(let name): "\"\(name)\" is not a valid client name"
    case .cryptography(let reason): reason
    }
  }

  /// The recommended action.
  public var hint: String {
    switch self {
    case .exists(let path) where path.hasSuffix("/ca.pem") || path.hasSuffix("/ca.key"):
      "--force replaces it; certificates and profiles of the old authority then stop working"
    case .exists(let path) where path.hasSuffix(".crt") || path.hasSuffix(".key"):
      "--force replaces it; the old certificate stays valid unless crl.pem exists, which `sallyport ca revoke` creates"
    case .exists: "--force replaces it"
    case .absent: "create an authority with `sallyport ca init`, and a client certificate with `sallyport ca issue`"
    case .foreign: "revoke it with the authority that issued it, in its folder"
    case .system(.read, _, _): "check the file and its permissions, or choose another folder with --folder"
    case .system: "choose another folder with --folder; for an exported file, another one with --output"
    case .malformed(let path, _) where path.hasSuffix("/crl.pem"):
      "take it from a copy; if there is none, remove it, and revoke again what it had"
    case .malformed:
      "create these files with `sallyport ca init` and `sallyport ca issue`, or with openssl and P-256 keys"
    case .unusableName: "use letters, digits, - and _; the names ca and crl are reserved for the authority"
    case .cryptography: "check the OpenSSL installation of this machine"
    }
  }
}
