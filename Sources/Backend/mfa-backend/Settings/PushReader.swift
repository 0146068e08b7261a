internal import ConfigurationEngine
internal import Foundation

extension SettingsBuilder {
  /// The delivery of push notifications, or `nil` if any value is faulty.
  mutating func push() -> BackendSettings.Push? {
    let (apns, fcm) = (apns(), fcm())
    guard let includesNotices = value(Keys.pushesNotices) else { return nil }
    if includesNotices, apns == nil, fcm == nil, !isGiven(Keys.apnsKey), !isGiven(Keys.fcmAccount) {
      refuse(path(Keys.pushesNotices), "has no effect without push.apns or push.fcm")
    }
    return BackendSettings.Push(apns: apns, fcm: fcm, includesNotices: includesNotices)
  }

  private mutating func apns() -> BackendSettings.Push.APNS? {
    guard
      isGiven(Keys.apnsKey) || isGiven(Keys.apnsKeyID) || isGiven(Keys.apnsTeamID) || isGiven(Keys.apnsEndpoint)
        || isGiven(Keys.apnsCA)
    else { return nil }
    let (keyFile, keyID) = (required(Keys.apnsKey), required(Keys.apnsKeyID))
    guard let teamID = required(Keys.apnsTeamID), let keyFile, let keyID else { return nil }
    return BackendSettings.Push.APNS(
      keyFile: keyFile, keyID: keyID, teamID: teamID, endpoint: value(Keys.apnsEndpoint),
      authorityFile: value(Keys.apnsCA))
  }

  private mutating func fcm() -> BackendSettings.Push.FCM? {
    guard let accountFile = value(Keys.fcmAccount) else {
      if !isGiven(Keys.fcmAccount), isGiven(Keys.fcmCA) {
        refuse(path(Keys.fcmCA), "has no effect without push.fcm.service_account_file")
      }
      if !isGiven(Keys.fcmAccount) { warnOfUnused(Keys.fcmEndpoint, without: Keys.fcmAccount) }
      return nil
    }
    return value(Keys.fcmEndpoint).map {
      BackendSettings.Push.FCM(accountFile: accountFile, endpoint: $0, authorityFile: value(Keys.fcmCA))
    }
  }
}

extension Kind where Value == String {
  /// The id of a key or of a team in a developer account of Apple.
  static var developerID: Kind {
    Kind(name: "id", form: "ten capital letters and digits", schema: .matching("^[A-Z0-9]{10}$")) {
      text throws(InvalidSetting) in
      guard text.utf8.count == 10, text.utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) })
      else { throw InvalidSetting("must be ten capital letters and digits, as the developer account shows it") }
      return text
    }
  }

  /// The server of a push service.
  static var pushServer: Kind {
    Kind(
      name: "URL", form: "an `https` URL, or an `http` URL on loopback, without a path",
      schema: .matching("^[hH][tT][tT][pP]")
    ) { text throws(InvalidSetting) in
      guard let parts = URLComponents(string: text), let scheme = parts.scheme?.lowercased(),
        ["http", "https"].contains(scheme), WebPlace.isTrustworthy(text)
      else {
        throw InvalidSetting(
          "must be https, or http on loopback: the tokens of devices and of the account are sent there")
      }
      guard !WebPlace.hasUser(text), parts.path.isEmpty || parts.path == "/", parts.query == nil, parts.fragment == nil
      else { throw InvalidSetting("must have scheme, host and port only") }
      return text.hasSuffix("/") ? String(text.dropLast()) : text
    }
  }
}
