extension SettingsBuilder {
  /// Where the admin server listens; `nil` if it is off, or what was given is a fault.
  mutating func admin() -> GateSettings.Admin? {
    checkSecretKeys(.token, Keys.adminToken, advice: TokenFile.hint)
    let tokenFile = value(Keys.adminToken)
    guard let address = value(Keys.adminListen) else {
      if tokenFile != nil, !entries.isFaulty(path(Keys.adminListen)) {
        refuse(path(Keys.adminToken), "says nothing without admin.listen")
      }
      return nil
    }
    switch address {
    case .unix:
      if tokenFile != nil { refuse(path(Keys.adminToken), "says nothing for a Unix socket, which its mode protects") }
    case .loopback:
      if tokenFile == nil, !entries.isFaulty(path(Keys.adminToken)) {
        refuse(
          path(Keys.adminToken), "missing: every user of this machine can reach \(address.text)",
          hint: "put a token into a file of mode 0600 (openssl rand -hex 32), or listen on unix:/path")
      }
    }
    return GateSettings.Admin(address: address, tokenFile: tokenFile)
  }
}
