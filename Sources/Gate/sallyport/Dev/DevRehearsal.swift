internal import Commands
internal import ConfigurationEngine
internal import FoundationEssentials
internal import GateRuntime
internal import Settings
internal import SimulatedDevice

/// An operator's configuration that a development gate runs: `sallyport dev -c FILE`.
///
/// The gate has its own certificate, store, admin socket and roots, and serves the apps, routes, limits and sessions of
/// the file.
struct DevRehearsal {
  /// The path as it was given.
  let file: String
  private let rehearsal: Rehearsal

  /// The sections and keys that a development gate has none of, or its own ones.
  private static let removed = [
    "listen.proxy_protocol", "tls.cert_file", "tls.key_file", "tls.certificates", "tls.acme", "app_attest.android",
    "app_attest.trust", "app_attest.challenge_keys_file", "store.url", "store.password_file", "admin", "metrics",
    "telemetry", "webhooks",
  ]

  /// Reads the file. The environment and `.env` do not count.
  init(file: String) throws(Failure) {
    self.file = file
    do throws(ConfigurationErrors) {
      rehearsal = try Rehearsal(of: file, in: FileManager.default.currentDirectoryPath)
    } catch {
      throw Failure(error)
    }
  }

  /// The apps of iOS in the file.
  var appIDs: [String] { rehearsal.appIDs }

  /// The settings of the development gate in `folder`.
  ///
  /// - Parameter flags: The address and the port, with the options that set them.
  func settings(in folder: AuthorityFolder, _ flags: [FlagSetting]) throws(Failure) -> Rehearsal.Settings {
    do throws(ConfigurationErrors) {
      return try rehearsal.settings(removing: Self.removed, replacing: flags + ownValues(in: folder))
    } catch {
      throw Failure(error)
    }
  }

  private func ownValues(in folder: AuthorityFolder) -> [FlagSetting] {
    var values = [
      ("tls.cert_file", folder.serverCertificatePath), ("tls.key_file", folder.serverKeyPath),
      ("store.url", "sqlite://\(folder.path)/state.db"),
      ("app_attest.trust.attestation_root_file", folder.attestationRootPath),
      ("app_attest.trust.receipt_root_file", folder.receiptRootPath),
    ]
    if let socket = DevFolder(path: folder.path).adminSocket { values.append(("admin.listen", "unix:\(socket)")) }
    if rehearsal.hasAndroidApps {
      values += [
        ("app_attest.trust.android_root_file", folder.androidRootPath),
        ("app_attest.android.status_list", folder.androidStatusListPath), ("app_attest.android.refresh", "1s"),
        ("app_attest.android.max_age", "365d"),
      ]
    }
    return values.map { FlagSetting(flag: "--folder", key: $0.0, text: $0.1) }
  }
}

extension Rehearsal.Difference {
  /// For people: `listen.port: 6200 instead of 443`.
  var text: String {
    switch (rehearsal, file) {
    case (let rehearsal?, let file?): "\(key): \(rehearsal) instead of \(file)"
    case (let rehearsal?, nil): "\(key): \(rehearsal)"
    case (nil, let file): "\(key): none instead of \(file ?? "none")"
    }
  }
}
