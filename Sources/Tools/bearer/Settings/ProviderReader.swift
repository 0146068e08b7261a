internal import ByteCoding
internal import Foundation
internal import OIDCClient
internal import ConfigurationEngine

/// Reads the section of one provider.
///
/// A value that is missing or faulty is replaced, so that the rules of `IdentityProvider` can judge the others: the user
/// sees all faults at once. A provider with a replaced value is never returned.
struct ProviderReader {
  private let id: String
  private let folder: String
  private let reading: (String) throws(SettingsFileError) -> SettingsFile
  private var fields: SectionReader<ProviderKey>
  private var idFaults = FaultList()
  /// The places of the elements of lists.
  private var elements: [ProviderKey: [YAMLDocument.Position]] = [:]

  private static let placeholder = URL(filePath: "/")

  init(
    id: String, _ members: [YAMLDocument.Member], at position: YAMLDocument.Position, folder: String,
    reading: @escaping (String) throws(SettingsFileError) -> SettingsFile
  ) {
    self.id = id
    self.folder = folder
    self.reading = reading
    fields = SectionReader(members, at: position, prefix: "providers.\(id).")
  }

  var faults: FaultList {
    var all = fields.faults
    all += idFaults
    return all
  }

  mutating func section() -> ProviderSection {
    let type = type()
    let candidate = candidate(type)
    judge(candidate)
    let use = use(candidate.authentication)
    let places = elements[.fallbacks] ?? []
    let fallbacks = zip(candidate.fallbacks, places).enumerated().map { index, fallback in
      ProviderSection.Fallback(id: fallback.0, index: index, position: fallback.1)
    }
    return ProviderSection(
      id: id, position: fields.start, provider: faults.isEmpty ? candidate : nil, fallbacks: fallbacks, use: use,
      hostPositions: elements[.gitHosts] ?? [])
  }

  /// The protocol; `nil` if its value is faulty.
  private mutating func type() -> ProviderType? {
    let type = fields.choice(.type, ["openid_connect": ProviderType.openIDConnect, "oauth2": .oauth2])
    return fields.faulty.contains(.type) ? nil : type ?? .openIDConnect
  }

  private mutating func candidate(_ type: ProviderType?) -> IdentityProvider {
    let name = fields.text(.name) ?? id
    let clientID = required(.clientID, "is required") ?? "faulty"
    let (authentication, secret) = authentication()
    let variations = variations()
    let scopes = list(.scopes) ?? (type == .openIDConnect && variations.grant == .user ? ["openid"] : [])
    let redirect = url(.redirectURI)
    let password = fields.choice(.passwordGrant, ["true": true, "false": false]) ?? false
    let dpop = fields.choice(.dpop, ["auto": DPoPUse.automatic, "off": .off, "required": .required]) ?? .automatic
    let trust = ConnectionTrust(
      authorityFile: authorityFile(), pins: pins(), clientCertificate: clientCertificate())
    let fallbacks = list(.fallbacks) ?? []
    if type == .openIDConnect {
      for key in ProviderKey.endpoints where fields.has(key) {
        fields.refuse(key, "is found by discovery with openid_connect; only oauth2 sets it")
      }
      return IdentityProvider(
        id: id, name: name, issuer: requiredURL(.issuer, "is required with openid_connect") ?? Self.placeholder,
        clientID: clientID, clientSecret: secret, scopes: scopes, redirectURI: redirect,
        authentication: authentication, allowsPasswordGrant: password, dpop: dpop, trust: trust, fallbacks: fallbacks,
        variations: variations)
    }
    let token = type == nil ? url(.tokenEndpoint) : requiredURL(.tokenEndpoint, "is required with oauth2")
    let endpoints = FurtherEndpoints(
      redirectURI: redirect, userinfo: url(.userinfoEndpoint), revocation: url(.revocationEndpoint),
      endSession: url(.endSessionEndpoint), deviceAuthorization: url(.deviceAuthorizationEndpoint),
      pushedAuthorization: url(.pushedAuthorizationEndpoint), challenge: url(.challengeEndpoint))
    return IdentityProvider(
      id: id, name: name, tokenEndpoint: token ?? Self.placeholder, authorizationEndpoint: url(.authorizationEndpoint),
      clientID: clientID, clientSecret: secret, scopes: scopes, type: .oauth2, issuer: url(.issuer)?.absoluteString,
      endpoints: endpoints, authentication: authentication, allowsPasswordGrant: password, dpop: dpop, trust: trust,
      fallbacks: fallbacks, variations: variations)
  }

  /// Maps the faults of the value to their places. Leaves out those of replaced values and of defaults, which follow from
  /// a fault that is known already.
  private mutating func judge(_ candidate: IdentityProvider) {
    let known = fields.faulty
    for fault in candidate.faults {
      let parts = fault.field.split(separator: "[")
      let index = parts.count == 2 ? Int(parts[1].dropLast()) : nil
      guard let key = ProviderKey(field: String(parts[0])) else {
        idFaults.add(fields.start, "providers.\(id)", fault.reason)
        continue
      }
      guard fields.has(key), !known.contains(key) else { continue }
      // What cannot be read is not there.
      if key == .privateKeyAlgorithm, !known.isDisjoint(with: [.authentication, .privateKeyFile]) { continue }
      if key == .authentication, !known.isDisjoint(with: [.certificateFile, .keyFile]) { continue }
      let place = index.flatMap { index in elements[key].flatMap { $0.indices.contains(index) ? $0[index] : nil } }
      fields.refuse(key, index, at: place ?? fields.position(of: key), fault.reason)
    }
  }
}

// The values.
extension ProviderReader {
  private mutating func required(_ key: ProviderKey, _ reason: String) -> String? {
    if !fields.has(key) { fields.refuse(key, reason) }
    return fields.text(key)
  }

  private mutating func requiredURL(_ key: ProviderKey, _ reason: String) -> URL? {
    if !fields.has(key) { fields.refuse(key, reason) }
    return url(key)
  }

  /// The URL, which must be one character by character: Foundation would percent-encode what a URL cannot contain.
  private mutating func url(_ key: ProviderKey) -> URL? {
    guard let text = fields.text(key) else { return nil }
    if let url = URL(string: text), url.absoluteString == text { return url }
    fields.refuse(key, "must be an absolute URL, such as https://login.example.com")
    return nil
  }

  private mutating func list(_ key: ProviderKey) -> [String]? {
    guard let list = fields.list(key) else { return nil }
    elements[key] = list.map(\.position)
    return list.map(\.text)
  }

  private mutating func authentication() -> (ClientAuthentication, secret: String?) {
    let secret = fields.has(.clientSecretFile) ? self.secret() ?? "faulty" : nil
    let key = fields.has(.privateKeyFile) ? secretText(.privateKeyFile) ?? "" : nil
    let keyID = fields.text(.privateKeyID)
    let proof = fields.choice(.attestationProof, ["auto": AttestationProof.automatic, "pop": .pop, "dpop": .dpop])
    enum Word { case none, basic, post, key, certificate, attestation }
    let given = fields.choice(
      .authentication,
      [
        "none": Word.none, "basic": .basic, "post": .post, "private_key_jwt": .key, "tls_client_auth": .certificate,
        "attestation": .attestation,
      ])
    if fields.faulty.contains(.authentication) { return (secret == nil ? .none : .basic, secret) }
    let word = given ?? (secret == nil ? .none : .basic)
    if word != .key {
      for key in [ProviderKey.privateKeyFile, .privateKeyID] where fields.has(key) && !fields.faulty.contains(key) {
        fields.refuse(key, "is only used with authentication private_key_jwt")
      }
    }
    if word != .attestation {
      for key in [ProviderKey.attestationCommand, .attestationKeyFile, .attestationProof] where fields.has(key) {
        fields.refuse(key, "is only used with authentication attestation")
      }
    }
    switch word {
    case .attestation: return (.attestation(proof ?? .automatic), secret)
    case .none: return (.none, secret)
    case .basic: return (.basic, secret)
    case .post: return (.post, secret)
    case .certificate: return (.tlsClientAuth, secret)
    case .key:
      if key == nil { fields.refuse(.authentication, "private_key_jwt needs private_key_file") }
      return (key.map { .privateKeyJWT(pem: $0, keyID: keyID) } ?? (secret == nil ? .none : .basic), secret)
    }
  }

  private mutating func variations() -> ProviderVariations {
    var variations = ProviderVariations(
      trustedAudiences: list(.trustedAudiences) ?? [], clockSkew: clockSkew() ?? ProviderVariations.usualClockSkew,
      parameters: parameters(.parameters, ProviderVariations.problem(ofParameter:_:)),
      assertionAudience: fields.choice(
        .assertionAudience, ["issuer": ProviderVariations.AssertionAudience.issuer, "token_endpoint": .tokenEndpoint]),
      grant: fields.choice(
        .grant, ["user": ProviderVariations.AccountGrant.user, "client_credentials": .clientCredentials]) ?? .user)
    variations.tokenParameters = parameters(.tokenParameters, ProviderVariations.problem(ofTokenParameter:_:))
    variations.pushing =
      fields.choice(.par, ["auto": ProviderVariations.RequestPushing.automatic, "required": .required]) ?? .automatic
    variations.discoveryURL = url(.discoveryURL)
    variations.assertionAlgorithm = fields.choice(
      .privateKeyAlgorithm, ["ES256": SignatureAlgorithm.es256, "RS256": .rs256, "PS256": .ps256])
    return variations
  }

  /// A time with its unit, such as `300s` or `5m`.
  private mutating func clockSkew() -> TimeInterval? {
    guard let text = fields.text(.clockSkew) else { return nil }
    let unit: [Character: Int] = ["s": 1, "m": 60]
    if let factor = text.last.flatMap({ unit[$0] }), let count = Int(text.dropLast()), (0...900).contains(count),
      text.dropLast().utf8.allSatisfy({ (0x30...0x39).contains($0) }),
      TimeInterval(count * factor) <= ProviderVariations.largestClockSkew
    {
      return TimeInterval(count * factor)
    }
    fields.refuse(.clockSkew, "must be a number of seconds or minutes up to 15m, such as 300s or 5m")
    return nil
  }

  /// The members of `parameters` or `token_parameters`.
  private mutating func parameters(
    _ key: ProviderKey, _ problem: (String, String) -> String?
  ) -> [String: String] {
    var parameters: [String: String] = [:]
    for member in fields.section(key) ?? [] {
      guard let name = member.key, case .scalar(let value) = member.value.content else {
        fields.refuse(key, at: member.position, "must contain names, each with a single value")
        continue
      }
      if let problem = problem(name, value) {
        fields.refuse(key, at: member.position, problem)
      } else if parameters.updateValue(value, forKey: name) != nil {
        fields.refuse(key, at: member.position, "\(name) is set twice")
      }
    }
    return parameters
  }

  /// What concerns this machine.
  private mutating func use(_ authentication: ClientAuthentication) -> ProviderUse {
    let hosts = list(.gitHosts) ?? []
    for (index, host) in hosts.enumerated() {
      if let problem = ProviderUse.problem(ofHost: host) {
        fields.refuse(.gitHosts, index, at: elements[.gitHosts]?[index] ?? fields.position(of: .gitHosts), problem)
      }
    }
    if hosts.count > ProviderUse.mostHosts { fields.refuse(.gitHosts, "must be at most \(ProviderUse.mostHosts)") }
    let name = fields.text(.gitUsername) ?? ProviderUse.usualGitUsername
    if !(1...64).contains(name.utf8.count) || !name.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) {
      fields.refuse(.gitUsername, "must be 1 to 64 printable ASCII characters without spaces")
    } else if fields.has(.gitUsername), !fields.has(.gitHosts) {
      fields.refuse(.gitUsername, "is only used with git_hosts")
    }
    let account = fields.text(.account)
    if let problem = account.flatMap(ProviderUse.problem(ofAccount:)) { fields.refuse(.account, problem) }
    return ProviderUse(
      gitHosts: hosts, gitUsername: name, account: account, attestations: attestations(authentication))
  }

  /// Where the attestations of a client come from that authenticates by them.
  private mutating func attestations(_ authentication: ClientAuthentication) -> ProviderUse.AttestationSource? {
    guard case .attestation = authentication else { return nil }
    for key in [ProviderKey.attestationCommand, .attestationKeyFile] where !fields.has(key) {
      fields.refuse(.authentication, "attestation needs \(key.rawValue)")
    }
    let command = list(.attestationCommand)
    let mostWords = ProviderUse.AttestationSource.mostWords
    if let command, !(1...mostWords).contains(command.count) || command[0].isEmpty {
      fields.refuse(.attestationCommand, "must be a program and its arguments, at most \(mostWords) words")
    }
    let keyFile = fields.text(.attestationKeyFile)
    if keyFile == "" { fields.refuse(.attestationKeyFile, "has no value") }
    guard let command, let keyFile else { return nil }
    return ProviderUse.AttestationSource(command: command, keyFile: path(keyFile))
  }

  /// The hashes of `pins`.
  private mutating func pins() -> Set<[UInt8]> {
    var pins: Set<[UInt8]> = []
    let elements = fields.list(.pins)
    if let elements, elements.isEmpty, !fields.faulty.contains(.pins) {
      fields.refuse(.pins, "is an empty list, which pins no key; leave it out for that")
    }
    for (index, element) in (elements ?? []).enumerated() {
      let hash = element.text.hasPrefix("sha256/") ? Base64.decode(element.text.dropFirst(7)) : nil
      if let hash, hash.count == 32 {
        pins.insert(hash)
      } else {
        fields.refuse(.pins, index, at: element.position, "must be sha256/ and the base64 of 32 bytes, 44 characters")
      }
    }
    return pins
  }
}

// The files.
extension ProviderReader {
  private func path(_ text: String) -> String { text.hasPrefix("/") ? text : "\(folder)/\(text)" }

  private mutating func file(_ key: ProviderKey) -> (path: String, content: SettingsFile)? {
    guard let text = fields.text(key) else { return nil }
    guard !text.isEmpty else {
      fields.refuse(key, "has no value")
      return nil
    }
    do throws(SettingsFileError) {
      return (path(text), try reading(path(text)))
    } catch {
      fields.refuse(key, "\(path(text)) \(error.reason)")
      return nil
    }
  }

  /// The text of a file that only its owner may read.
  private mutating func secretText(_ key: ProviderKey) -> String? {
    guard let file = file(key) else { return nil }
    guard file.content.isPrivate else {
      fields.refuse(
        key, "group or others can read or change \(file.path); run chmod 600, and replace what they may know")
      return nil
    }
    guard let text = String(validating: file.content.bytes, as: UTF8.self) else {
      fields.refuse(key, "\(file.path) is not valid UTF-8")
      return nil
    }
    return text
  }

  /// The client secret: the file without the line break at its end.
  private mutating func secret() -> String? {
    guard let text = secretText(.clientSecretFile) else { return nil }
    let secret = text.last?.isNewline == true ? String(text.dropLast()) : text
    guard secret.contains(where: { !$0.isWhitespace }) else {
      fields.refuse(.clientSecretFile, "the file is empty")
      return nil
    }
    return secret
  }

  /// The certificate and the key of the client, which need one another.
  private mutating func clientCertificate() -> ClientCertificate? {
    for (key, other) in [(ProviderKey.certificateFile, ProviderKey.keyFile), (.keyFile, .certificateFile)]
    where fields.has(key) && !fields.has(other) {
      fields.refuse(key, "needs \(other.rawValue)")
    }
    let chain = file(.certificateFile)
    let key = secretText(.keyFile)
    guard let chain, let key else { return nil }
    guard let text = String(validating: chain.content.bytes, as: UTF8.self) else {
      fields.refuse(.certificateFile, "\(chain.path) is not valid UTF-8")
      return nil
    }
    return ClientCertificate(
      chain: text, key: key, chainFile: chain.path, keyFile: fields.text(.keyFile).map(path))
  }

  private mutating func authorityFile() -> String? {
    guard let file = file(.authorityFile) else { return nil }
    guard PEMCertificates.areWellFormed(in: file.content.bytes) else {
      fields.refuse(.authorityFile, "\(file.path) contains no certificate in PEM, or a malformed one")
      return nil
    }
    return file.path
  }
}
