internal import ConfigurationEngine

extension SettingsBuilder {
  private static let acme = SettingPath.root["tls"]["acme"]
  /// The most names that an authority takes in one order: Let's Encrypt's limit.
  private static let mostNames = 100

  /// Whether any key of `tls.acme` is given, valid or not. A section without keys is none.
  var givesACME: Bool {
    let prefix = Self.acme.pattern + "."
    return entries.values.keys.contains { $0.pattern.hasPrefix(prefix) }
      || entries.containers[path(Keys.acmeDomains, 0).parent] != nil
      || entries.faults.contains { $0.key?.hasPrefix(prefix) == true }
  }

  /// The settings of certificates by ACME; `nil` if there are none, or a value is faulty.
  ///
  /// - Parameter files: A key of certificate files that is given, too: there is one source of certificates.
  mutating func acme(besides files: SettingPath?) -> GateSettings.TLS.ACME? {
    guard givesACME else { return nil }
    if let files {
      refuse(
        Self.acme, "not allowed together with \(files.text)",
        hint: "remove tls.acme, or the certificate files; the gate serves certificates of one source")
    }
    let names = acmeNames()
    check(.certificates, Keys.acmeCA)
    let binding = acmeBinding()
    let proof = acmeProof()
    let usesCommonName = value(Keys.acmeCommonName) == true
    if usesCommonName, let names { checkCommonName(of: names) }
    if let names { refuseUnprovable(names, by: value(Keys.acmeChallenge) ?? .tlsALPN) }
    guard let names, let proof, files == nil else { return nil }
    return GateSettings.TLS.ACME(
      domains: names, email: value(Keys.acmeEmail),
      directory: value(Keys.acmeDirectory) ?? GateSettings.TLS.ACME.letsEncrypt, profile: value(Keys.acmeProfile),
      usesCommonName: usesCommonName, proof: proof, caFile: value(Keys.acmeCA), binding: binding)
  }

  private mutating func acmeNames() -> [String]? {
    let list = path(Keys.acmeDomains, 0).parent
    let names = elements(Keys.acmeDomains)
    guard entries.indices(of: list).allSatisfy({ !entries.isFaulty(list[$0]) }), !entries.isFaulty(list) else {
      return nil
    }
    guard !names.isEmpty else {
      refuse(list, "missing", hint: "list the names of the certificate: domains: [gate.example.com]")
      return nil
    }
    guard names.count <= Self.mostNames else {
      refuse(list, "\(names.count) names; an authority accepts at most \(Self.mostNames) in one certificate")
      return nil
    }
    return names
  }

  /// A common name has at most 64 characters (RFC 5280 appendix A.1).
  private mutating func checkCommonName(of names: [String]) {
    guard let name = names.first(where: { NetworkName.bytes(of: $0) == nil }) else {
      return refuse(path(Keys.acmeCommonName), "tls.acme.domains has no DNS name, only addresses")
    }
    guard name.utf8.count <= 64 else {
      return refuse(
        path(Keys.acmeCommonName), "\(name) is longer than 64 characters",
        hint: "put a shorter name first in tls.acme.domains")
    }
  }

  private mutating func acmeBinding() -> GateSettings.TLS.ACME.Binding? {
    let (keyID, keyFile) = (value(Keys.acmeBindingKeyID), value(Keys.acmeBindingKey))
    checkSecretKeys(.base64URLKey, Keys.acmeBindingKey)
    if keyID != nil, keyFile == nil, !entries.isFaulty(path(Keys.acmeBindingKey)) {
      refuse(path(Keys.acmeBindingKey), "missing: tls.acme.eab.key_id is given")
    }
    if keyID == nil, keyFile != nil, !entries.isFaulty(path(Keys.acmeBindingKeyID)) {
      refuse(path(Keys.acmeBindingKeyID), "missing: tls.acme.eab.key_file is given")
    }
    guard let keyID, let keyFile else { return nil }
    return GateSettings.TLS.ACME.Binding(keyID: keyID, keyFile: keyFile)
  }
}
