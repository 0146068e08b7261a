internal import ConfigurationEngine
internal import Foundation
internal import OIDCClient

/// Reads the section of one provider.
///
/// A value that is missing or faulty is replaced, so that the rules of `IdentityProvider` can judge the others: the
/// user sees all faults at once. A provider with a replaced value is never used, because its file has a fault.
struct ProviderReader {
  private(set) var builder: SettingsBuilder
  private let id: String
  private let section: SettingPath
  /// The keys whose values have a fault. Further faults would only follow from it.
  private var faulty: Set<String>

  private static let placeholder = URL(filePath: "/")

  /// The path of a provider's section.
  static func section(of id: String) -> SettingPath { SettingPath.root["providers"][name: id] }

  init(id: String, _ builder: SettingsBuilder) {
    let section = Self.section(of: id)
    (self.id, self.builder, self.section) = (id, builder, section)
    faulty = Set(builder.entries.faulty.filter { $0.isPart(of: section) }.compactMap { $0.steps.dropFirst(2).first })
  }

  mutating func read() -> (provider: IdentityProvider, use: ProviderUse) {
    let candidate = candidate(value(Keys.type))
    judge(candidate)
    return (candidate, use(candidate.authentication))
  }

  /// - Parameter type: The protocol; `nil` if its value is faulty.
  private mutating func candidate(_ type: ProviderType?) -> IdentityProvider {
    let name = value(Keys.name) ?? id
    let clientID = builder.required(Keys.clientID, at: path(Keys.clientID)) ?? "faulty"
    let (authentication, secret) = authentication()
    let variations = variations()
    let scopes = list(Keys.scopes) ?? (type == .openIDConnect && variations.grant == .user ? ["openid"] : [])
    let redirect = value(Keys.redirectURI)
    let password = value(Keys.passwordGrant) ?? false
    let dpop = value(Keys.dpop) ?? .automatic
    let trust = ConnectionTrust(
      authorityFile: authorityFile(), pins: Set(list(Keys.pins) ?? []), clientCertificate: clientCertificate())
    builder.refuseEmptyList(path(Keys.pins), meaning: "no pins")
    let fallbacks = list(Keys.fallbacks) ?? []
    if type == .openIDConnect {
      for key in Keys.endpoints where isGiven(key) {
        refuse(key, "is found by discovery with openid_connect; only oauth2 sets it")
      }
      return IdentityProvider(
        id: id, name: name, issuer: required(Keys.issuer, with: "openid_connect") ?? Self.placeholder,
        clientID: clientID, clientSecret: secret, scopes: scopes, redirectURI: redirect,
        authentication: authentication, allowsPasswordGrant: password, dpop: dpop, trust: trust, fallbacks: fallbacks,
        variations: variations)
    }
    let token = type == nil ? value(Keys.tokenEndpoint) : required(Keys.tokenEndpoint, with: "oauth2")
    let endpoints = FurtherEndpoints(
      redirectURI: redirect, userinfo: value(Keys.userinfoEndpoint), revocation: value(Keys.revocationEndpoint),
      endSession: value(Keys.endSessionEndpoint), deviceAuthorization: value(Keys.deviceAuthorizationEndpoint),
      pushedAuthorization: value(Keys.pushedAuthorizationEndpoint), challenge: value(Keys.challengeEndpoint))
    return IdentityProvider(
      id: id, name: name, tokenEndpoint: token ?? Self.placeholder,
      authorizationEndpoint: value(Keys.authorizationEndpoint), clientID: clientID, clientSecret: secret,
      scopes: scopes, type: .oauth2, issuer: value(Keys.issuer)?.absoluteString, endpoints: endpoints,
      authentication: authentication, allowsPasswordGrant: password, dpop: dpop, trust: trust, fallbacks: fallbacks,
      variations: variations)
  }

  /// Maps the faults of the value to their places. Leaves out those of replaced values and of defaults, which follow
  /// from a fault that is known already.
  private mutating func judge(_ candidate: IdentityProvider) {
    let known = faulty
    for fault in candidate.faults {
      guard let field = SettingPath(text: fault.field), field.steps[0] != "id" else {
        builder.refuse(section, fault.reason)
        continue
      }
      let key = ["client_secret", "private_key"].contains(field.steps[0]) ? field.steps[0] + "_file" : field.steps[0]
      guard builder.entries.isGiven(section[key]), !known.contains(key) else { continue }
      // What cannot be read is not there.
      if key == "private_key_algorithm", !known.isDisjoint(with: ["authentication", "private_key_file"]) { continue }
      if key == "authentication", !known.isDisjoint(with: ["cert_file", "key_file"]) { continue }
      builder.refuse(field.indices.first.map { section[key][$0] } ?? section[key], fault.reason)
    }
  }
}

// The values.
extension ProviderReader {
  /// The path of a value; of the whole list or section for the key of its elements.
  private func path<Value>(_ key: Key<Value>) -> SettingPath {
    section[SettingPath(pattern: key.definition.pattern).steps[2]]
  }

  private func isGiven<Value>(_ key: Key<Value>) -> Bool { builder.entries.isGiven(path(key)) }

  private func isFaulty<Value>(_ key: Key<Value>) -> Bool { faulty.contains(path(key).last) }

  private mutating func refuse<Value>(_ key: Key<Value>, _ reason: String) {
    faulty.insert(path(key).last)
    builder.refuse(path(key), reason)
  }

  private func value<Value>(_ key: Key<Value>) -> Value? { builder.value(key, at: path(key)) }

  private mutating func required(_ key: Key<URL>, with type: String) -> URL? {
    if !isGiven(key) { refuse(key, "is required with \(type)") }
    return value(key)
  }

  private func list<Value>(_ key: Key<Value>) -> [Value]? {
    isGiven(key) ? builder.elements(key, of: id).map(\.value) : nil
  }

  /// Refuses `keys` that are given and mean nothing without `method`.
  private mutating func refuse<each Value>(_ keys: repeat Key<each Value>, without method: AuthenticationMethod) {
    func judge<One>(_ key: Key<One>) {
      guard isGiven(key), !isFaulty(key) else { return }
      refuse(key, "is only used with authentication \(method.rawValue)")
    }
    repeat judge(each keys)
  }

  private mutating func authentication() -> (ClientAuthentication, secret: String?) {
    let secret = isGiven(Keys.clientSecretFile) ? self.secret() ?? "faulty" : nil
    let key = isGiven(Keys.privateKeyFile) ? secretText(Keys.privateKeyFile) ?? "" : nil
    let usual = secret == nil ? ClientAuthentication.none : .basic
    guard !isFaulty(Keys.authentication) else { return (usual, secret) }
    let method = value(Keys.authentication) ?? (secret == nil ? AuthenticationMethod.none : .basic)
    if method != .privateKey { refuse(Keys.privateKeyFile, Keys.privateKeyID, without: .privateKey) }
    if method != .attestation {
      refuse(Keys.attestationCommand, Keys.attestationKeyFile, Keys.attestationProof, without: .attestation)
    }
    switch method {
    case .attestation: return (.attestation(value(Keys.attestationProof) ?? .automatic), secret)
    case .none: return (.none, secret)
    case .basic: return (.basic, secret)
    case .post: return (.post, secret)
    case .certificate: return (.tlsClientAuth, secret)
    case .privateKey:
      if key == nil { refuse(Keys.authentication, "private_key_jwt needs private_key_file") }
      return (key.map { .privateKeyJWT(pem: $0, keyID: value(Keys.privateKeyID)) } ?? usual, secret)
    }
  }

  private mutating func variations() -> ProviderVariations {
    var variations = ProviderVariations(
      trustedAudiences: list(Keys.trustedAudiences) ?? [],
      clockSkew: value(Keys.clockSkew).map { $0 / .seconds(1) } ?? ProviderVariations.usualClockSkew,
      parameters: parameters(Keys.parameters, ProviderVariations.problem(ofParameter:_:)),
      assertionAudience: value(Keys.assertionAudience), grant: value(Keys.grant) ?? .user)
    variations.tokenParameters = parameters(
      Keys.tokenParameters, ProviderVariations.problem(ofTokenParameter:_:))
    variations.pushing = value(Keys.par) ?? .automatic
    variations.discoveryURL = value(Keys.discoveryURL)
    variations.assertionAlgorithm = value(Keys.privateKeyAlgorithm).flatMap(SignatureAlgorithm.init)
    return variations
  }

  /// The members of `parameters` or `token_parameters`.
  private mutating func parameters(
    _ key: Key<String>, _ problem: (String, String) -> String?
  ) -> [String: String] {
    var parameters: [String: String] = [:]
    for name in builder.entries.names(of: path(key)) {
      let place = path(key)[name: name]
      guard let value = builder.value(key, at: place) else { continue }
      if let problem = problem(name, value) { builder.refuse(place, problem) } else { parameters[name] = value }
    }
    return parameters
  }

  /// What concerns this machine.
  private mutating func use(_ authentication: ClientAuthentication) -> ProviderUse {
    let hosts = list(Keys.gitHosts) ?? []
    if hosts.count > ProviderUse.mostHosts { refuse(Keys.gitHosts, "must be at most \(ProviderUse.mostHosts)") }
    if isGiven(Keys.gitUsername), !isFaulty(Keys.gitUsername), !isGiven(Keys.gitHosts) {
      refuse(Keys.gitUsername, "is only used with git_hosts")
    }
    return ProviderUse(
      gitHosts: hosts, gitUsername: value(Keys.gitUsername) ?? ProviderUse.usualGitUsername,
      account: value(Keys.account), attestations: attestations(authentication))
  }

  /// Where the attestations of a client come from that authenticates by them.
  private mutating func attestations(_ authentication: ClientAuthentication) -> ProviderUse.AttestationSource? {
    guard case .attestation = authentication else { return nil }
    if !isGiven(Keys.attestationCommand) { refuse(Keys.authentication, "attestation needs attestation_command") }
    if !isGiven(Keys.attestationKeyFile) { refuse(Keys.authentication, "attestation needs attestation_key_file") }
    let command = isFaulty(Keys.attestationCommand) ? nil : list(Keys.attestationCommand)
    let mostWords = ProviderUse.AttestationSource.mostWords
    if let command, !(1...mostWords).contains(command.count) || command[0].isEmpty {
      refuse(Keys.attestationCommand, "must be a program and its arguments, at most \(mostWords) words")
    }
    guard let command, let keyFile = value(Keys.attestationKeyFile) else { return nil }
    return ProviderUse.AttestationSource(command: command, keyFile: keyFile)
  }
}

// The files.
extension ProviderReader {
  private mutating func secretText(_ key: Key<String>) -> String? {
    guard let path = value(key) else { return nil }
    do throws(SecretFileError) { return try SecretFile.text(path) } catch {
      refuse(key, error.reason)
      return nil
    }
  }

  /// The client secret: the file without the line break at its end.
  private mutating func secret() -> String? {
    guard let text = secretText(Keys.clientSecretFile) else { return nil }
    let secret = text.last?.isNewline == true ? String(text.dropLast()) : text
    guard secret.contains(where: { !$0.isWhitespace }) else {
      refuse(Keys.clientSecretFile, "the file is empty")
      return nil
    }
    return secret
  }

  private mutating func file(_ key: Key<String>) -> (path: String, bytes: [UInt8])? {
    guard let path = value(key) else { return nil }
    do throws(FileContentError) { return (path, try FileContent.read(path)) } catch {
      refuse(key, "cannot read \(path): \(error.reason)")
      return nil
    }
  }

  /// The certificate and the key of the client, which need one another.
  private mutating func clientCertificate() -> ClientCertificate? {
    for (key, other) in [(Keys.certificateFile, Keys.keyFile), (Keys.keyFile, Keys.certificateFile)]
    where isGiven(key) && !isGiven(other) {
      refuse(key, "needs \(other.definition.name)")
    }
    let chain = file(Keys.certificateFile)
    let key = secretText(Keys.keyFile)
    guard let chain, let key else { return nil }
    guard let text = String(validating: chain.bytes, as: UTF8.self) else {
      refuse(Keys.certificateFile, "\(chain.path) is not valid UTF-8")
      return nil
    }
    return ClientCertificate(chain: text, key: key, chainFile: chain.path, keyFile: value(Keys.keyFile))
  }

  private mutating func authorityFile() -> String? {
    guard let file = file(Keys.authorityFile) else { return nil }
    guard PEMCertificates.areWellFormed(in: file.bytes) else {
      refuse(Keys.authorityFile, "\(file.path) contains no certificate in PEM, or a malformed one")
      return nil
    }
    return file.path
  }
}
