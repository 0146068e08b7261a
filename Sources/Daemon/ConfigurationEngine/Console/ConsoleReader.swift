extension SettingsBuilder {
  /// The console over TLS; `nil` if it is off or a value is faulty.
  ///
  /// Reads no file: the service that is not the console may not read the console's key.
  ///
  /// - Parameter hasAdminServer: Whether there is an admin server, which the console asks.
  public mutating func console(hasAdminServer: Bool) -> ConsoleSettings? {
    let (authority, people, provider) = (clientAuthority(), people(), provider())
    let place = path(ConsoleKeys.listen)
    guard let listen = value(ConsoleKeys.listen) else {
      if !entries.isFaulty(place) {
        // Not the keys with a default, which the example of the configuration has.
        refuseGiven(
          [ConsoleKeys.certificate, ConsoleKeys.privateKey, ConsoleKeys.clientCA, ConsoleKeys.issuer].map { path($0) }
            + [path(ConsoleKeys.url)], "has no effect without admin.console.listen")
      }
      return nil
    }
    if !hasAdminServer {
      refuse(place, "needs admin.listen: the console asks the admin server")
    }
    let url = required(
      ConsoleKeys.url, hint: "set it to the address that people open: https://console.example.com:\(listen.port)")
    let certificate = required(ConsoleKeys.certificate, hint: "the console listens with TLS only")
    let key = required(ConsoleKeys.privateKey, hint: "the console listens with TLS only")
    let isAuthorityFaulty = entries.isFaulty(path(ConsoleKeys.clientCA))
    let isIssuerFaulty = entries.isFaulty(path(ConsoleKeys.issuer))
    if authority == nil, provider == nil, !isAuthorityFaulty, !isIssuerFaulty, value(ConsoleKeys.issuer) == nil {
      refuse(
        place, "no one can sign in",
        hint: "set admin.console.client_ca_file with admin.console.people, or admin.console.oidc.issuer with its groups"
      )
    }
    guard let url, let certificate, let key else { return nil }
    return ConsoleSettings(
      listen: listen, url: url, certificateFile: certificate, keyFile: key, clientAuthority: authority, people: people,
      provider: provider)
  }

  /// Refuses those of `paths` that have a value.
  private mutating func refuseGiven(_ paths: [SettingPath], _ reason: String) {
    for path in paths where entries.values[path] != nil { refuse(path, reason) }
  }

  private mutating func clientAuthority() -> ConsoleSettings.ClientAuthority? {
    let list = ConsoleKeys.section["people"]
    let lists = value(ConsoleKeys.revocationLists)
    guard let file = value(ConsoleKeys.clientCA) else {
      guard !entries.isFaulty(path(ConsoleKeys.clientCA)) else { return nil }
      let reason = "has no effect without admin.console.client_ca_file"
      if lists != nil { refuse(path(ConsoleKeys.revocationLists), reason) }
      if !entries.indices(of: list).isEmpty { refuse(list, reason) }
      return nil
    }
    if entries.indices(of: list).isEmpty, !entries.isFaulty(list) {
      refuse(
        path(ConsoleKeys.clientCA), "no certificate has a role",
        hint: "add admin.console.people: [{ subject: \"CN=alice\", role: support }]")
    }
    return ConsoleSettings.ClientAuthority(file: file, revocationListFile: lists)
  }

  private mutating func people() -> [ConsoleSettings.Entry] {
    var people: [ConsoleSettings.Entry] = []
    for index in elementIndices(of: ConsoleKeys.section["people"]) {
      let subject = required(ConsoleKeys.subject, index)
      guard let role = required(ConsoleKeys.personRole, index), let subject else { continue }
      if people.contains(where: { $0.name.utf8.elementsEqual(subject.utf8) }) {
        refuse(path(ConsoleKeys.subject, index), "\(InvalidSetting.quoted(subject)) has a role already")
      }
      people.append(ConsoleSettings.Entry(name: subject, role: role))
    }
    return people
  }

  private mutating func provider() -> ConsoleSettings.Provider? {
    let section = ConsoleKeys.section["oidc"]
    let groups = groups()
    let scopes = elements(ConsoleKeys.scopes)
    guard let issuer = value(ConsoleKeys.issuer) else {
      if !entries.isFaulty(path(ConsoleKeys.issuer)) {
        let reason = "has no effect without admin.console.oidc.issuer"
        refuseGiven([ConsoleKeys.clientID, ConsoleKeys.clientSecret, ConsoleKeys.providerCA].map { path($0) }, reason)
        for list in [section["groups"], section["scopes"]] where !entries.indices(of: list).isEmpty {
          refuse(list, reason)
        }
      }
      return nil
    }
    let list = section["groups"]
    if entries.indices(of: list).isEmpty, !entries.isFaulty(list) {
      refuse(
        path(ConsoleKeys.issuer), "no group has a role",
        hint: "add admin.console.oidc.groups: [{ name: gate-support, role: support }]")
    }
    guard let client = required(ConsoleKeys.clientID), let claim = value(ConsoleKeys.groupsClaim) else { return nil }
    return ConsoleSettings.Provider(
      issuer: issuer, clientID: client, secretFile: value(ConsoleKeys.clientSecret),
      authorityFile: value(ConsoleKeys.providerCA), scopes: ["openid"] + scopes.filter { $0 != "openid" },
      groupsClaim: claim, groups: groups)
  }

  private mutating func groups() -> [ConsoleSettings.Entry] {
    var groups: [ConsoleSettings.Entry] = []
    for index in elementIndices(of: ConsoleKeys.section["oidc"]["groups"]) {
      let name = required(ConsoleKeys.group, index)
      guard let role = required(ConsoleKeys.groupRole, index), let name else { continue }
      if groups.contains(where: { $0.name.utf8.elementsEqual(name.utf8) }) {
        refuse(path(ConsoleKeys.group, index), "\(InvalidSetting.quoted(name)) has a role already")
      }
      groups.append(ConsoleSettings.Entry(name: name, role: role))
    }
    return groups
  }
}
