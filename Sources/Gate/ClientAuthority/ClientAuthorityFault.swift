internal import Glibc

/// Why an authority of client certificates did not do what it was asked.
public enum ClientAuthorityFault: Error, Sendable, Hashable {
  /// The file at this path would have been overwritten.
  case exists(String)
  /// There is no file at this path.
  case absent(String)
  /// A system call on `path` failed; `code` is an `errno`.
  case system(_ action: String, path: String, code: Int32)
  /// What is in the file cannot be used; the text says why, without quoting a key.
  case malformed(_ path: String, reason: String)
  /// A name that cannot be the name of a client's files.
  case unusableName(String)
  /// OpenSSL refused.
  case cryptography(String)
}

extension ClientAuthorityFault: CustomStringConvertible {
  public var description: String {
    switch self {
    case .exists(let path): "\(path) is there already"
    case .absent(let path): "there is no \(path)"
    case .system(let action, let path, let code): "cannot \(action) \(path): \(String(cString: strerror(code)))"
    case .malformed(let path, let reason): "\(path): \(reason)"
    case .unusableName(let name): "\"\(name)\" cannot be the name of a client's files"
    case .cryptography(let reason): reason
    }
  }

  /// What a person can do about it.
  public var hint: String {
    switch self {
    case .exists: "--force replaces it: what was issued or installed with the old one is then of no use"
    case .absent: "`sallyport ca init` makes an authority, `sallyport ca issue` a client's certificate"
    case .system: "choose another folder with --folder"
    case .malformed:
      "these files are made by `sallyport ca init` and `sallyport ca issue`, or by openssl with P-256 keys"
    case .unusableName: "letters, digits, - and _, and not ca, which is the authority itself"
    case .cryptography: "see the system's OpenSSL"
    }
  }
}
