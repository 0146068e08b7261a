internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import ConfigurationEngine
internal import Foundation
internal import Logging
internal import MFADelivery
internal import MFADomain

/// The options for push notifications.
struct PushOptions: ParsableArguments {
  @Option(name: .customLong("apns-key"), help: "File with the key for Apple Push Notification service, AuthKey_….p8.")
  var apnsKey: String?

  @Option(name: .customLong("apns-key-id"), help: "The id of the key.")
  var apnsKeyID: String?

  @Option(name: .customLong("apns-team-id"), help: "The id of the team that has the developer account.")
  var apnsTeamID: String?

  @Option(
    name: .customLong("fcm-account"), help: "JSON file with the service account for Firebase Cloud Messaging.")
  var fcmAccount: String?

  var flags: [FlagSetting] {
    [
      FlagSetting("--apns-key", "push.apns.key_file", apnsKey),
      FlagSetting("--apns-key-id", "push.apns.key_id", apnsKeyID),
      FlagSetting("--apns-team-id", "push.apns.team_id", apnsTeamID),
      FlagSetting("--fcm-account", "push.fcm.service_account_file", fcmAccount),
    ].compactMap(\.self)
  }
}

/// The providers of push services.
typealias PushProviders = [PushAddress.Service: any PushProvider]

extension BackendSettings {
  /// Reads the keys of the push services.
  ///
  /// - Throws: `Failure` if a file cannot be read, is not private, or has another kind of key.
  func pushProviders(_ templates: MessageTemplates = .builtIn) throws(Failure) -> PushProviders {
    var providers: PushProviders = [:]
    if let apns = push.apns { providers[.apns] = try provider(apns, templates) }
    if let fcm = push.fcm { providers[.fcm] = try provider(fcm, templates) }
    return providers
  }

  func provider(_ apns: Push.APNS, _ templates: MessageTemplates = .builtIn) throws(Failure) -> APNSProvider {
    let pem = try InputFile.readSecret(apns.keyFile, "the key file of APNs")
    if let file = apns.authorityFile { try InputFile.require(file, "the root file of APNs") }
    do throws(PushKeyFault) {
      let key = try APNSKey(pem: String(decoding: pem, as: UTF8.self), keyID: apns.keyID, teamID: apns.teamID)
      return APNSProvider(
        key: key, endpoint: apns.endpoint, domain: domain, templates: templates, authorityFile: apns.authorityFile)
    } catch {
      throw Failure(
        .configuration, "push.apns.key_file: \(apns.keyFile): \(error.reason)",
        hint: "make a key with the service APNs in the developer account; its file can be loaded once")
    }
  }

  func provider(_ fcm: Push.FCM, _ templates: MessageTemplates = .builtIn) throws(Failure) -> FCMProvider {
    let json = try InputFile.readSecret(fcm.accountFile, "the service account file")
    if let file = fcm.authorityFile { try InputFile.require(file, "the root file of FCM") }
    do throws(PushKeyFault) {
      return FCMProvider(
        account: try FCMAccount(json: Array(json)), endpoint: fcm.endpoint, domain: domain, templates: templates,
        authorityFile: fcm.authorityFile)
    } catch {
      throw Failure(
        .configuration, "push.fcm.service_account_file: \(fcm.accountFile): \(error.reason)",
        hint: "make a key of the service account as JSON in the settings of the Firebase project")
    }
  }

  /// Where push notifications of a service go.
  func pushPlace(_ service: PushAddress.Service) -> String {
    switch service {
    case .apns: push.apns.map { $0.endpoint ?? "Apple" } ?? "off"
    case .fcm: push.fcm?.endpoint ?? "off"
    }
  }
}

extension PushDelivery {
  /// Removes addresses that a service does not know from `store`.
  convenience init(forgettingIn store: MeasuredStore, logger: Logger) {
    self.init(
      logger: logger,
      forget: { address, instant in
        do {
          _ = try await PushAddresses.forget(address, unknownSince: instant, in: store, at: WallClock.system.now())
        } catch {
          logger.warning("push address not removed", metadata: ["reason": "\(error)"])
        }
      })
  }
}
