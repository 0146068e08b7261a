internal import ConfigurationEngine

extension SettingsBuilder {
  /// How control of the names of `tls.acme` is proven; `nil` if a value is faulty.
  mutating func acmeProof() -> GateSettings.TLS.ACME.Proof? {
    guard !entries.isFaulty(path(Keys.acmeChallenge)) else { return nil }
    let challenge = value(Keys.acmeChallenge) ?? .tlsALPN
    if challenge != .http, value(Keys.acmeHTTPListen) != nil {
      refuse(path(Keys.acmeHTTPListen), "has no effect without tls.acme.challenge: http-01")
    }
    let records = acmeRecords(of: challenge)
    switch challenge {
    case .tlsALPN: return .tlsALPN
    case .http: return .http(value(Keys.acmeHTTPListen) ?? GateSettings.TLS.ACME.standardHTTPListen)
    case .dns:
      let wait = value(Keys.acmeDNSWait) ?? GateSettings.TLS.ACME.standardWait
      return records.map { .dns($0, wait: wait) }
    }
  }

  /// Refuses names that `challenge` cannot prove.
  mutating func refuseUnprovable(_ names: [String], by challenge: GateSettings.TLS.ACME.Challenge) {
    let list = path(Keys.acmeDomains, 0).parent
    for (index, name) in names.enumerated() {
      if name.hasPrefix("*."), challenge != .dns {
        refuse(
          list[index], "\(name) is a wildcard, which \(challenge.rawValue) cannot prove",
          hint: "set tls.acme.challenge: dns-01, or list the names one by one")
      } else if NetworkName.bytes(of: name) != nil, challenge == .dns {
        refuse(
          list[index], "\(name) is an address, which dns-01 cannot prove",
          hint: "set tls.acme.challenge to tls-alpn-01 or http-01")
      }
    }
  }

  private mutating func acmeRecords(of challenge: GateSettings.TLS.ACME.Challenge) -> GateSettings.TLS.ACME.Records? {
    let keys = [Keys.acmeDNSHook.definition, Keys.acmeDNSServer.definition, Keys.acmeDNSKey.definition]
    let places = (keys + [Keys.acmeDNSWait.definition]).map { SettingPath(pattern: $0.pattern, indices: []) }
    guard challenge == .dns else {
      for place in places where isChosen(place) {
        refuse(place, "has no effect without tls.acme.challenge: dns-01")
      }
      return nil
    }
    let isFaulty = places.contains { entries.isFaulty($0) }
    let (hook, server) = (value(Keys.acmeDNSHook), value(Keys.acmeDNSServer))
    let keyFile = server != nil || isChosen(path(Keys.acmeDNSKey)) ? value(Keys.acmeDNSKey) : nil
    checkHook()
    checkSecretKeys(.transactionKey, Keys.acmeDNSKey, advice: "write the key as tsig-keygen prints it")
    switch (hook, server, keyFile) {
    case (let hook?, nil, nil): return .hook(hook)
    case (nil, let server?, let keyFile?): return .server(server, keyFile: keyFile)
    case (.some, .some, _):
      refuse(path(Keys.acmeDNSHook), "not allowed together with tls.acme.dns.server")
    case (.some, nil, .some):
      refuse(path(Keys.acmeDNSKey), "has no effect without tls.acme.dns.server")
    case (nil, .some, nil):
      if !isFaulty { refuse(path(Keys.acmeDNSKey), "missing: tls.acme.dns.server is given") }
    case (nil, nil, .some):
      if !isFaulty { refuse(path(Keys.acmeDNSServer), "missing: tls.acme.dns.key_file is given") }
    case (nil, nil, nil):
      if !isFaulty {
        refuse(
          path(Keys.acmeChallenge), "dns-01 needs tls.acme.dns.hook, or tls.acme.dns.server with its key_file")
      }
    }
    return nil
  }

  /// Whether an operator has set the value. A credential is there for every gate of a service.
  private func isChosen(_ place: SettingPath) -> Bool {
    guard let entry = entries.values[place] else { return false }
    if case .credential = entry.origin { return false }
    return true
  }

  /// The gate runs the program, so only its owner and its group may change it.
  private mutating func checkHook() {
    let place = path(Keys.acmeDNSHook)
    guard let file = value(Keys.acmeDNSHook) else { return }
    guard FileContent.isRegular(file), let permissions = FileContent.permissions(of: file) else {
      return refuse(place, "\(file) does not exist, or is not a file")
    }
    if permissions & 0o111 == 0 {
      refuse(place, "\(file) is not executable", hint: "run chmod 755 \(file)")
    } else if permissions & 0o002 != 0 {
      refuse(
        place, "every user of this machine can change \(file)", hint: "run chmod o-w \(file), and check its content")
    }
  }
}
