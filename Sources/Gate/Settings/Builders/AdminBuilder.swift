internal import ConfigurationEngine

extension SettingsBuilder {
  /// The admin server's settings; `nil` if it is off or a value is faulty.
  mutating func admin() -> GateSettings.Admin? {
    checkSecretKeys(.token, Keys.adminToken, advice: TokenFile.hint)
    let tokenFile = value(Keys.adminToken)
    let group = value(Keys.adminGroup)
    guard let address = value(Keys.adminListen) else {
      if tokenFile != nil, !entries.isFaulty(path(Keys.adminListen)) {
        refuse(path(Keys.adminToken), "has no effect without admin.listen")
      }
      if group != nil, !entries.isFaulty(path(Keys.adminListen)) {
        refuse(path(Keys.adminGroup), "has no effect without admin.listen")
      }
      return nil
    }
    switch address {
    case .unix:
      if tokenFile != nil {
        refuse(path(Keys.adminToken), "not allowed for a Unix socket, which its file mode protects")
      }
    case .loopback:
      if group != nil {
        refuse(
          path(Keys.adminGroup), "has no effect for a loopback address, which every user of this machine can reach")
      }
      if tokenFile == nil, !entries.isFaulty(path(Keys.adminToken)) {
        refuse(
          path(Keys.adminToken), "missing: every user of this machine can reach \(address.text)",
          hint: "write a token to a file of mode 0600 (openssl rand -hex 32), or listen on unix:/path")
      }
    }
    return GateSettings.Admin(address: address, group: group, tokenFile: tokenFile)
  }
}
