internal import ByteCoding
internal import Crypto
internal import CryptoExtras
internal import Foundation

/// A certificate by which a client proves in the TLS handshake which client it is (RFC 8705, section 2). A provider can
/// also bind access tokens to it (section 3).
public struct ClientCertificate: Sendable, Hashable {
  /// The most certificates of a chain.
  static let mostCertificates = 10

  /// The certificate, and after it those of its authorities, as PEM.
  public let chain: String
  /// Its private key, as PEM without encryption: P-256, P-384, P-521, or RSA of at least 2,048 bits.
  public let key: String
  /// The file of the chain, for programs that get its path; `nil` if there is none.
  public let chainFile: String?
  /// The file of the key.
  public let keyFile: String?

  /// Creates a value, which `problems` judges.
  public init(chain: String, key: String, chainFile: String? = nil, keyFile: String? = nil) {
    self.chain = chain
    self.key = key
    self.chainFile = chainFile
    self.keyFile = keyFile
  }

  /// The SHA-256 hash of the certificate, in base64url: what a token that is bound to it has as `cnf.x5t#S256`
  /// (section 3.1). `nil` if the chain contains no certificate.
  public var thumbprint: String? {
    Self.certificates(in: chain)?.first.map { Base64URL.encode(Array(SHA256.hash(data: $0))) }
  }

  /// What is wrong, and with which of the two: `cert` or `key`; `nil` if a client can use it. Its times are not judged.
  var problem: (part: Part, reason: String)? {
    guard let certificates = Self.certificates(in: chain), let first = certificates.first else {
      return (.chain, "contains no certificate in PEM, or a malformed one")
    }
    guard certificates.count <= Self.mostCertificates else {
      return (.chain, "contains more than \(Self.mostCertificates) certificates")
    }
    guard key.contains("-----BEGIN "), key.contains("PRIVATE KEY-----") else {
      return (.key, "is not a private key in PEM")
    }
    if key.contains("ENCRYPTED") { return (.key, "must not be encrypted") }
    guard let publicKey = Self.publicKey(of: key) else {
      return (.key, "must be a key of P-256, P-384 or P-521, or an RSA key of at least 2,048 bits")
    }
    // A certificate contains its key as the same bytes (RFC 5280, section 4.1.2.7).
    guard first.contains(publicKey) else {
      return (.key, "is not the key of the first certificate of cert_file")
    }
    return nil
  }

  /// A part of the value.
  enum Part { case chain, key }

  /// The SubjectPublicKeyInfo of a private key.
  private static func publicKey(of pem: String) -> [UInt8]? {
    if let key = try? P256.Signing.PrivateKey(pemRepresentation: pem) { return Array(key.publicKey.derRepresentation) }
    if let key = try? P384.Signing.PrivateKey(pemRepresentation: pem) { return Array(key.publicKey.derRepresentation) }
    if let key = try? P521.Signing.PrivateKey(pemRepresentation: pem) { return Array(key.publicKey.derRepresentation) }
    return (try? _RSA.Signing.PrivateKey(pemRepresentation: pem)).map { Array($0.publicKey.derRepresentation) }
  }

  /// The blocks `CERTIFICATE` of a PEM text (RFC 7468); `nil` if one is malformed.
  private static func certificates(in pem: String) -> [[UInt8]]? {
    var found: [[UInt8]] = []
    var base64: String?
    for line in pem.split(whereSeparator: \.isNewline) {
      let line = line.trimmingCharacters(in: .whitespaces)
      if line == "-----BEGIN CERTIFICATE-----" {
        guard base64 == nil else { return nil }
        base64 = ""
      } else if line == "-----END CERTIFICATE-----" {
        guard let der = base64.flatMap({ Base64.decode($0) }), der.count > 2, der[0] == 0x30 else { return nil }
        found.append(der)
        base64 = nil
      } else {
        base64?.append(contentsOf: line)
      }
    }
    return base64 == nil ? found : nil
  }
}

extension ClientCertificate: CustomStringConvertible, CustomReflectable {
  /// The hash of the certificate.
  public var description: String { thumbprint ?? "no certificate" }
  /// No members: the key stays out of logs.
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}
