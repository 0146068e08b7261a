internal import ByteCoding

/// How commands use a provider: what concerns this machine and not the provider.
public struct ProviderUse: Sendable, Hashable {
  /// The most hosts.
  static let mostHosts = 64
  /// What Git gets as the user name where neither its request nor the entry has one. GitHub, GitLab, Gitea and
  /// Bitbucket take the token alone, under almost any name.
  static let usualGitUsername = "oauth2"

  /// The hosts that `bearer git-credential` gives the token to, in lower case, each with its port unless that is the
  /// usual one.
  public let gitHosts: [String]
  /// The user name that it gives.
  public let gitUsername: String
  /// The account of commands that name none; `nil` for the one without a name.
  public let account: String?
  /// Where client attestations come from; `nil` for a client that authenticates in another way.
  public let attestations: AttestationSource?

  /// A program that prints a client attestation, and the file with the key that it is for.
  public struct AttestationSource: Sendable, Hashable {
    /// The most words of a command.
    static let mostWords = 64

    /// The program, which is looked for in PATH, and its arguments.
    public let command: [String]
    /// PEM, P-256. The program may make the file.
    public let keyFile: String

    /// Creates a value.
    public init(command: [String], keyFile: String) {
      self.command = command
      self.keyFile = keyFile
    }
  }

  /// Creates a value; without arguments, that of an entry without these keys.
  public init(
    gitHosts: [String] = [], gitUsername: String = "oauth2", account: String? = nil,
    attestations: AttestationSource? = nil
  ) {
    self.gitHosts = gitHosts
    self.gitUsername = gitUsername
    self.account = account
    self.attestations = attestations
  }

  /// What is wrong with the name of an account; `nil` if it is one. It stands after the provider's in lists, as
  /// `work/ada`, and may be an e-mail address.
  public static func problem(ofAccount name: String) -> String? {
    let bytes = name.utf8
    func isLetterOrDigit(_ byte: UInt8) -> Bool {
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
      default: false
      }
    }
    guard (1...64).contains(bytes.count), let first = bytes.first, isLetterOrDigit(first),
      bytes.allSatisfy({ isLetterOrDigit($0) || "-_.@+".utf8.contains($0) })
    else { return "must be 1 to 64 letters, digits and -_.@+, a letter or digit first" }
    return nil
  }

  /// What is wrong with a host; `nil` if it is one.
  static func problem(ofHost text: String) -> String? {
    if text.contains("://") { return "must be a host without https://, such as git.example.com" }
    let isName = text.utf8.allSatisfy { byte in
      switch byte {
      case 0x30...0x39, 0x61...0x7A, UInt8(ascii: "."), UInt8(ascii: "-"): true
      default: false
      }
    }
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    if isName || parts.count != 2 {
      return isName && (1...255).contains(text.utf8.count)
        ? nil : "must be a host in lower case, with its port unless that is 443, such as git.example.com:8443"
    }
    let isNumber = parts[1].utf8.allSatisfy { (0x30...0x39).contains($0) }
    let port = isNumber ? UInt16(parts[1]) ?? 0 : 0
    return problem(ofHost: String(parts[0])) ?? (port == 0 ? "must have a port from 1 to 65535" : nil)
  }
}
