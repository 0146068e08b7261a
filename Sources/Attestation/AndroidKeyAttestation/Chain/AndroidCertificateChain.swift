public import Cryptography

/// The certificates of an attested key as the device sent them, leaf first. Parsed, not verified.
public struct AndroidCertificateChain: Sendable {
  /// The number of certificates that a chain may have. Genuine ones have three to five.
  public static let lengths = 2...10
  /// The maximum size of all certificates together, in bytes. Genuine chains have less than 6 KB.
  public static let maximumSize = 65536

  /// The certificates, leaf first, in the order in which they were sent.
  public let certificates: [Certificate]
  /// The certificate of the attested key.
  public let leaf: Certificate

  /// Parses the certificates, each one in DER.
  ///
  /// - Throws: the rejections for the number, the size, and each certificate that cannot be parsed.
  public init(_ encoded: [[UInt8]]) throws(AndroidAttestationRejection) {
    guard Self.lengths.contains(encoded.count) else {
      throw AndroidAttestationRejection(.chainLength(encoded.count))
    }
    let size = encoded.reduce(0) { $0 + $1.count }
    guard size <= Self.maximumSize else { throw AndroidAttestationRejection(.chainSize(size)) }
    var certificates: [Certificate] = []
    var rejections: [AndroidRuleRejection] = []
    for (position, der) in encoded.enumerated() {
      do throws(CryptographyError) {
        // A leaf's dates and version do not count, so that they cannot refuse it.
        let certificate = position == 0 ? try Certificate(ofDevice: der) : try Certificate(der: der)
        if let irregularity = certificate.irregularity(isLeaf: position == 0) {
          rejections.append(.malformedCertificate(position, reason: irregularity))
        }
        certificates.append(certificate)
      } catch {
        rejections.append(.malformedCertificate(position, reason: "\(error)"))
      }
    }
    guard rejections.isEmpty, let leaf = certificates.first else { throw AndroidAttestationRejection(rejections) }
    self.certificates = certificates
    self.leaf = leaf
    endsWithRoot = certificates.last?.isSelfIssued == true
  }

  /// Whether the last certificate is a root's. Devices may leave it out.
  private(set) var endsWithRoot: Bool

  /// The same chain, where a certificate with the key of one of `roots` counts as a root, whatever issuer it names: the
  /// key is trusted, and a root may be certified by another one, too.
  func ending(at roots: [IssuerKey]) -> AndroidCertificateChain {
    guard let last = certificates.last, roots.contains(where: { $0.spki == last.subjectPublicKeyInfo }) else {
      return self
    }
    var chain = self
    chain.endsWithRoot = true
    return chain
  }

  /// The positions of the certificates between the leaf and the root: the attestation certificate, which belongs to
  /// the device or to a batch of devices, and the authorities above it.
  var issuerPositions: Range<Int> { 1..<max(1, certificates.count - (endsWithRoot ? 1 : 0)) }
}

extension Certificate {
  /// Whether it names itself as its issuer, as a root's does.
  var isSelfIssued: Bool { issuerName == subjectName }

  /// The first encoding that DER does not allow and `Certificate` accepts; `nil` if there is none.
  ///
  /// Genuine devices write the BOOLEAN `critical` as 1, and in leaves, which they make themselves, also FALSE, which
  /// DER leaves out.
  fileprivate func irregularity(isLeaf: Bool) -> String? {
    for item in extensions {
      switch item.critical {
      case nil, 0xFF, 1: continue
      case 0 where isLeaf: continue
      case 0: return "the extension \(item.identifier) says that it is not critical, which DER leaves out"
      case .some(let octet): return "the extension \(item.identifier) is critical by the octet \(octet), not 255"
      }
    }
    return Self.irregularity(ofSerial: serialNumber)
  }

  private static func irregularity(ofSerial serial: [UInt8]) -> String? {
    guard let first = serial.first else { return "the serial number has no bytes" }
    guard first < 0x80 else { return "the serial number is negative" }
    guard serial.count == 1 || first != 0 || serial[1] >= 0x80 else { return "the serial number has leading zeros" }
    // RFC 5280 section 4.1.2.2: 20 octets, and one for the sign.
    guard serial.count <= 20 || (serial.count == 21 && first == 0) else {
      return "the serial number has \(serial.count) bytes"
    }
    return nil
  }
}
