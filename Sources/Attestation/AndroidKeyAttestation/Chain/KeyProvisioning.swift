internal import Cryptography

/// How the key that signs a device's attestations came into it.
public enum KeyProvisioning: String, Sendable, Hashable, CaseIterable {
  /// Written at the factory, for all the life of the device, often the same key in many devices.
  case factory
  /// Certified by Google's server for this device, for some weeks.
  case remote
  /// None of both by its names.
  case unknown

  /// What the names of the certificate say that the root's key signed.
  ///
  /// Only this certificate counts: the holder of a leaked factory key can write any name into those below it.
  init(belowRoot certificate: Certificate) {
    let attributes = (try? Self.attributes(of: certificate.subjectName)) ?? []
    // As bytes: nothing is verified yet, and the sender of a chain chooses them.
    let value = { (identifier: String) in attributes.first { $0.type == ObjectIdentifier(identifier) }?.value }
    if let name = value("2.5.4.10"), name.elementsEqual("Google LLC".utf8),
      value("2.5.4.3")?.starts(with: "Droid CA".utf8) == true
    {
      self = .remote
    } else {
      // Google numbers the authorities of factories: the attribute serialNumber of the subject.
      self = value("2.5.4.5") == nil ? .unknown : .factory
    }
  }

  private static func attributes(
    of name: [UInt8]
  ) throws(ASN1Error) -> [(type: ObjectIdentifier, value: ArraySlice<UInt8>)] {
    var file = ASN1Reader(name)
    var list = try file.enter(.sequence)
    var attributes: [(ObjectIdentifier, ArraySlice<UInt8>)] = []
    while !list.isAtEnd {
      var set = try list.enter(.set)
      while !set.isAtEnd {
        var attribute = try set.enter(.sequence)
        let type = try attribute.objectIdentifier()
        attributes.append((type, try attribute.next().content))
        try attribute.end()
      }
    }
    return attributes
  }
}
