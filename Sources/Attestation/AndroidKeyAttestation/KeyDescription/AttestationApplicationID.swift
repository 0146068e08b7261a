internal import Cryptography

/// The app that asked for an attestation, as the system of the device reports it.
///
/// Apps that share a user of the system share this value, so system apps list many packages.
public struct AttestationApplicationID: Sendable, Hashable {
  /// A package and its version.
  public struct Package: Sendable, Hashable {
    /// The name, as bytes of UTF-8, which the system does not promise.
    public let name: [UInt8]
    /// The version code.
    public let version: UInt64

    /// The name as text, for reports.
    public var text: String { String(decoding: name, as: UTF8.self) }
  }

  /// The packages, in the order of the certificate.
  public let packages: [Package]
  /// SHA-256 of each certificate that signed the packages, 32 bytes each unless the system reported something else.
  public let signatureDigests: [[UInt8]]

  /// Parses the content of the OCTET STRING.
  init(_ bytes: ArraySlice<UInt8>) throws(ASN1Error) {
    var file = ASN1Reader(bytes)
    var fields = try file.enter(.sequence)
    try file.end()
    var packages: [Package] = []
    var list = try fields.enter(.set)
    while !list.isAtEnd {
      var package = try list.enter(.sequence)
      packages.append(
        Package(name: Array(try package.octetString()), version: try package.unsignedInteger64()))
      try package.end()
    }
    var digests: [[UInt8]] = []
    var set = try fields.enter(.set)
    while !set.isAtEnd { digests.append(Array(try set.octetString())) }
    try fields.end()
    self.packages = packages
    signatureDigests = digests
  }
}

extension AndroidCertificateChain {
  /// The names of the packages that the leaf names, not verified, as bytes; none if it cannot be read.
  ///
  /// Bytes, since the sender of a chain chooses them: to hash a `String` of many combining marks takes time with the
  /// square of their number.
  public var packageNames: Set<[UInt8]> {
    guard let value = leaf.extensionValue(oid: KeyDescription.extensionIdentifier),
      let description = try? KeyDescription(value)
    else { return [] }
    return Set(description.softwareEnforced.applicationID?.packages.map(\.name) ?? [])
  }
}
