internal import ByteCoding
internal import Cryptography
internal import FoundationEssentials

/// Where a gate keeps its account, its certificate and the plan for the next one. Gates may share a storage.
public protocol CertificateStorage: Sendable {
  /// Whether other machines use the storage too.
  var isShared: Bool { get }

  /// Returns the content of `document`; `nil` if there is none.
  func content(of document: CertificateDocument) async throws(ACMEError) -> [UInt8]?

  /// Replaces the content as a whole: a reader finds the old or the new one, even after the process was killed at any
  /// moment. `nil` removes the document.
  func write(_ content: [UInt8]?, to document: CertificateDocument) async throws(ACMEError)

  /// Tries to become the only one who orders for `scope`, and returns whether that worked. It ends with `unlock` or
  /// with the process.
  func lock(_ scope: String) async throws(ACMEError) -> Bool
  func unlock(_ scope: String) async
  /// Yields when another gate may have written something. It may be late or lost: read from time to time, too.
  func notices() -> AsyncStream<Void>
}

/// A document of a storage.
public struct CertificateDocument: Sendable, Hashable {
  /// What is in it.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// The key and the URL of an account.
    case account = "account.json"
    /// A certificate's key and chain, PEM.
    case certificate = "certificate.pem"
    /// The order that is not finished, with the key of its certificate.
    case order = "order.json"
    /// The challenges that listeners answer now.
    case challenges = "challenges.json"
    /// The plan for the next order.
    case plan = "plan.json"

    /// Whether a private key is in it that others must not read.
    var holdsPrivateKey: Bool {
      switch self {
      case .account, .certificate, .order: true
      case .challenges, .plan: false
      }
    }
  }

  /// The most bytes of a document. A storage must read what it has written, so larger ones are not written.
  public static let longest = 512 << 10

  /// Letters, digits, hyphens and dots.
  public let scope: String
  public let kind: Kind

  public init(scope: String, kind: Kind) { (self.scope, self.kind) = (scope, kind) }

  /// The scope, a slash and the kind.
  public var name: String { "\(scope)/\(kind.rawValue)" }
}

/// The account at a server.
struct StoredAccount: Codable {
  /// PKCS #8, PEM.
  var key: String
  /// `nil` before the server has confirmed the account.
  var url: String?
  /// The e-mail address that the server knows.
  var email: String?
  /// The key of the external account binding.
  var binding: String?
}

/// An order that is not finished.
///
/// It is stored before the server is asked for the certificate, so a process that is killed loses neither the order nor
/// the key of its certificate: the next attempt continues it.
struct PendingOrder: Codable, Hashable {
  private enum CodingKeys: String, CodingKey {
    case url, account, key
    case begunAt = "begun_at"
  }

  var url: String
  /// The URL of the account that ordered.
  var account: String
  /// The key of the future certificate: PKCS #8, PEM.
  var key: String
  /// When it was placed, in the form of RFC 3339; `nil` in a document of an earlier version.
  var begunAt: String?
}

/// What the certificates are ordered for, and where.
public struct CertificateOrderSettings: Sendable, Hashable {
  /// The URL of the server's directory.
  public var directory: String
  /// DNS names in lower case and IP addresses, at least one, without repetitions.
  public var names: [String]
  public var email: String?
  public var binding: ExternalAccountBinding?
  /// How control of the names is proven.
  public var challenge = ChallengeKind.tlsALPN
  /// The profile of the orders (draft-ietf-acme-profiles); `nil` for the server's own choice.
  public var profile: String?
  /// Whether a request has the first DNS name as common name, too, for authorities that ask for one. Clients do not
  /// read it (RFC 9525).
  public var usesCommonName = false

  public init(directory: String, names: [String], email: String? = nil, binding: ExternalAccountBinding? = nil) {
    (self.directory, self.names, self.email, self.binding) = (directory, names, email, binding)
  }

  /// The scope of the account: one for each server and binding.
  public var accountScope: String {
    let place = HTTPSPlace(directory)?.host ?? "acme"
    return "\(Self.word(place))-\(Self.digest([directory, binding?.keyID ?? ""]))"
  }

  /// The scope of the certificate: one for each set of names at each server, whatever the order of the names.
  public var certificateScope: String { scope(beginningWith: names.min() ?? "none") }

  /// The scopes that earlier versions used for the same names: they began with the first of the names in the settings.
  public var formerScopes: [String] { names.map { scope(beginningWith: $0) }.filter { $0 != certificateScope } }

  private func scope(beginningWith name: String) -> String {
    "\(Self.word(name))-\(Self.digest([directory] + names.sorted()))"
  }

  private static func word(_ text: String) -> String {
    String(
      text.unicodeScalars.prefix(100).map {
        $0.isASCII && $0.properties.isAlphabetic || ("0"..."9").contains($0) || $0 == "." ? Character($0) : "-"
      })
  }

  private static func digest(_ parts: [String]) -> String {
    Hex.encode(SHA256.hash(Array(parts.joined(separator: "\n").utf8)).prefix(4))
  }
}
